import type { Milliseconds, Time } from '../index.js';
import { systemTime } from '../time.js';

/** The host's monotonic clock, which all its processes share: readings of different processes can be compared. */
export function hostNow(): Milliseconds {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * Time for a limiter, on the host's clock, that remembers its readings: an admission's time is the reading its decision
 * was made on, not one taken beside it. May run faster than the host's clock, for limits that are compressed in time.
 */
export class RememberingTime implements Time {
  /** The latest reading. */
  last: Milliseconds = 0;
  /** The first reading since {@link forget}: what a decision without a wait is made on. */
  first: Milliseconds | undefined;
  readonly #speed: number;

  constructor(speed = 1) {
    this.#speed = speed;
  }

  forget(): void {
    this.first = undefined;
  }

  now = (): Milliseconds => {
    this.last = hostNow() * this.#speed;
    this.first ??= this.last;
    return this.last;
  };

  wallNow = (): Milliseconds => Date.now() * this.#speed;

  after = (delayMs: Milliseconds, task: () => void) => systemTime.after(delayMs / this.#speed, task);
}
