import type { Milliseconds, Time, Timer } from '../../../src/index.js';
import { systemTime } from '../../../src/time.js';

/** CLOCK_MONOTONIC: one clock for all processes of a machine, unlike `performance.now()`, which starts with each. */
export function monotonicNow(): Milliseconds {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}

/** The process's clocks, with a note of what was read, so that a test knows the reading that a decision used. */
export class WitnessedTime implements Time {
  /** First reading since `watch()`: the one that a decision made within the call used. */
  first: Milliseconds = 0;
  /** Latest reading: the one that the queue of waiting callers is being served by. */
  last: Milliseconds = 0;
  #watching = false;

  watch(): void {
    this.#watching = true;
  }

  now = (): Milliseconds => {
    this.last = monotonicNow();
    if (this.#watching) {
      this.#watching = false;
      this.first = this.last;
    }
    return this.last;
  };

  wallNow = (): number => systemTime.wallNow();

  after(delayMs: Milliseconds, task: () => void): Timer {
    return systemTime.after(delayMs, task);
  }
}
