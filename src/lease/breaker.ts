import type { Random } from '../time.js';
import type { Milliseconds } from '../units.js';

/** Failures in a row, over all keys, after which the store counts as unreachable; no connection counts at once. */
const FAILURES = 3;
/** The first and the longest pause between two probes of a store that is out of reach. */
const FIRST_PAUSE_MS: Milliseconds = 50;
const LONGEST_PAUSE_MS: Milliseconds = 500;

/**
 * Whether the ceiling store can be reached, as this limiter has seen. While it can't, one call at a time goes out as a
 * probe, at jittered and growing pauses; the first answer closes the breaker.
 */
export class Breaker {
  readonly #random: Random;
  readonly #deadlineMs: Milliseconds;
  #failures = 0;
  #pauseMs = FIRST_PAUSE_MS;
  #probeAt: Milliseconds = Number.NEGATIVE_INFINITY;
  #openSince: Milliseconds | undefined;
  #lastError: Error | undefined;

  /** @param deadlineMs after which a call that was not answered counts as failed */
  constructor(random: Random, deadlineMs: Milliseconds) {
    this.#random = random;
    this.#deadlineMs = deadlineMs;
  }

  get open(): boolean {
    return this.#openSince !== undefined;
  }

  get openSince(): Milliseconds | undefined {
    return this.#openSince;
  }

  get lastError(): Error | undefined {
    return this.#lastError;
  }

  /** When the next probe may go out. */
  get probeAt(): Milliseconds {
    return this.#probeAt;
  }

  /** Whether a call may go out now. */
  admits(now: Milliseconds): boolean {
    return this.#openSince === undefined || now >= this.#probeAt;
  }

  /** A call goes out: while open it is the probe, and the next one waits until this one must have come to its end. */
  sent(now: Milliseconds): void {
    if (this.#openSince !== undefined) this.#pause(now);
  }

  /** Answers whether this closed the breaker. */
  succeeded(): boolean {
    const wasOpen = this.#openSince !== undefined;
    this.#failures = 0;
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#openSince = undefined;
    this.#lastError = undefined;
    return wasOpen;
  }

  /** Answers whether this opened the breaker. `certain`: there is no connection. */
  failed(error: Error, certain: boolean, now: Milliseconds): boolean {
    this.#failures += certain ? FAILURES : 1;
    this.#lastError = error;
    if (this.#openSince !== undefined || this.#failures < FAILURES) return false;
    this.#openSince = now;
    this.#pause(now);
    return true;
  }

  #pause(now: Milliseconds): void {
    this.#probeAt = now + Math.max(this.#pauseMs * (0.75 + 0.5 * this.#random()), this.#deadlineMs + 1);
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2);
  }
}
