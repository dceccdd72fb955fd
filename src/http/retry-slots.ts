import type { Milliseconds } from '../units.js';

/** Above this many keys those whose slots have passed are forgotten, once a second; and no more than so many are noted. */
const PRUNE_ABOVE = 1_000;
const PRUNE_EVERY_MS: Milliseconds = 1_000;
const MOST_KEYS = 100_000;

/**
 * Gives each of a crowd that was denied for one key a slot of its own to come back in: with everybody back at the first
 * moment, all but one would be denied again. Only ever later than the time it could pass at the earliest, by no more than
 * a bound, so that those who come back without having waited can't put the others off for ever.
 */
export class RetrySlots {
  readonly #mostMs: Milliseconds;
  /** The last slot given, by key. */
  readonly #last = new Map<string, Milliseconds>();
  #prunedAt: Milliseconds = Number.NEGATIVE_INFINITY;

  /** @param mostMs most that anybody is put off */
  constructor(mostMs: Milliseconds) {
    this.#mostMs = mostMs;
  }

  /**
   * How long the next one should stay away: `retryAfterMs` or longer.
   *
   * @param retryAfterMs when it could pass, if nobody else came
   * @param gapMs how long the limit takes to earn what it costs, such as 10 at 100 tokens a second
   */
  next(key: string, retryAfterMs: Milliseconds, gapMs: Milliseconds, now: Milliseconds): Milliseconds {
    const earliest = now + retryAfterMs;
    const inTurn = (this.#last.get(key) ?? Number.NEGATIVE_INFINITY) + gapMs;
    // What is not put off stays the number it is, to the last digit.
    const laterMs = Math.min(Math.max(0, inTurn - earliest), this.#mostMs);
    this.#note(key, earliest + laterMs, now);
    return retryAfterMs + laterMs;
  }

  #note(key: string, slot: Milliseconds, now: Milliseconds): void {
    if (this.#last.size >= PRUNE_ABOVE && now - this.#prunedAt >= PRUNE_EVERY_MS) {
      this.#prunedAt = now;
      for (const [other, at] of this.#last) if (at <= now) this.#last.delete(other);
    }
    if (this.#last.size < MOST_KEYS || this.#last.has(key)) this.#last.set(key, slot);
  }
}
