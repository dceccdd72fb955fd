import type { Time, Timer } from '../../../src/time.js';
import type { EpochMilliseconds, Microseconds, Milliseconds } from '../../../src/units.js';

/** Where every clock of a test stands at true time 0. */
const EPOCH_MS: EpochMilliseconds = 1_700_000_000_000;

/** True time, which nobody in the fleet can read: whole microseconds. The store's clock may step away from it. */
export class TrueTime {
  us: Microseconds = 0;
  storeOffsetUs: Microseconds = 0;

  readonly storeNow = (): Microseconds => EPOCH_MS * 1_000 + this.us + this.storeOffsetUs;
}

interface PendingTask {
  readonly at: Milliseconds;
  readonly order: number;
  readonly task: () => void;
}

/**
 * The clocks of one machine: a monotonic one with an origin and a drift of its own, and a wall clock that is wrong by a
 * fixed amount. Timers run only when the fleet says so, never early.
 */
export class MachineTime implements Time {
  readonly #time: TrueTime;
  readonly #originMs: Milliseconds;
  readonly #pace: number;
  readonly #wallErrorMs: Milliseconds;
  #tasks: PendingTask[] = [];
  #order = 0;
  #suspendedMs: Milliseconds = 0;

  /** @param drift 0.01: a clock that runs 1 % fast. */
  constructor(time: TrueTime, originMs: Milliseconds, drift: number, wallErrorMs: Milliseconds) {
    this.#time = time;
    this.#originMs = originMs;
    this.#pace = 1 + drift;
    this.#wallErrorMs = wallErrorMs;
  }

  now = (): Milliseconds => this.#originMs + (this.#time.us / 1_000) * this.#pace - this.#suspendedMs;

  wallNow = (): EpochMilliseconds => EPOCH_MS + this.#wallErrorMs + (this.#time.us / 1_000) * this.#pace;

  after(delayMs: Milliseconds, task: () => void): Timer {
    const pending = { at: this.now() + Math.max(0, delayMs), order: this.#order++, task };
    this.#tasks.push(pending);
    return { cancel: () => (this.#tasks = this.#tasks.filter((other) => other !== pending)) };
  }

  /** The machine slept for `ms` of true time that has passed: its monotonic clock stood still, its wall clock did not. */
  slept(ms: Milliseconds): void {
    this.#suspendedMs += ms;
  }

  /** True time at which the first timer is due; Infinity: none. */
  dueAt(): Microseconds {
    let at = Number.POSITIVE_INFINITY;
    for (const task of this.#tasks) at = Math.min(at, task.at);
    return Math.ceil(((at - this.#originMs + this.#suspendedMs) / this.#pace) * 1_000);
  }

  /** Runs what is due by now, in order; what it starts with no delay too. */
  runDue(): void {
    for (let turns = 0; turns < 1_000; turns++) {
      // A microsecond of grace: times that were turned into true ones and back may have lost their last bits.
      const now = this.now() + 0.001;
      let first: PendingTask | undefined;
      for (const task of this.#tasks) {
        if (task.at > now) continue;
        if (!first || task.at < first.at || (task.at === first.at && task.order < first.order)) first = task;
      }
      if (!first) return;
      const run = first;
      this.#tasks = this.#tasks.filter((other) => other !== run);
      run.task();
    }
    throw new Error('Timers of no delay that never end.');
  }

  get pending(): number {
    return this.#tasks.length;
  }
}
