import type { Time } from '../time.js';
import type { Milliseconds } from '../units.js';

/** Wall and monotonic time may drift apart by this much between two looks before it counts as a suspend. */
const TOLERANCE_MS: Milliseconds = 250;

/**
 * Notices that the machine was suspended or the process cloned: the wall clock went on, the monotonic one (on Linux)
 * did not. A wall clock that was set looks the same and costs the same: what is held is dropped once.
 */
export class SuspendWatch {
  readonly #time: Time;
  #offset: Milliseconds;

  constructor(time: Time) {
    this.#time = time;
    this.#offset = time.wallNow() - time.now();
  }

  /** Whether that has happened since the last look. */
  noticed(): boolean {
    const offset = this.#time.wallNow() - this.#time.now();
    const apart = Math.abs(offset - this.#offset);
    this.#offset = offset;
    return apart > TOLERANCE_MS;
  }
}
