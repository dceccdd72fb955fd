import { type Level, refill } from '../ceiling/exact.js';
import type { CeilingTerms } from '../policy/policy.js';
import { MICRO, type Microseconds, type MicroTokens, type Tokens } from '../units.js';

/**
 * The smallest burst with which buckets of a given rate would have denied nobody. Each key runs the ledger's own bucket
 * with the largest burst there is, so that nobody is denied; a bucket of burst B lacks as much below B at each moment,
 * so the most that any ever lacked is the burst that was needed. Exact, with three numbers a key.
 */
export class SmallestBurst {
  readonly #terms: CeilingTerms;
  #needed: MicroTokens = 0;

  constructor({ rateNum, rateDen }: CeilingTerms) {
    this.#terms = { burst: Number.MAX_SAFE_INTEGER, rateNum, rateDen };
  }

  /** The bucket of a key that is seen for the first time. */
  newLevel(now: Microseconds): Level {
    return { tokens: this.#terms.burst, remainder: 0, at: now };
  }

  /** A request of this key has come. */
  see(level: Level, cost: Tokens, now: Microseconds): void {
    const { burst } = this.#terms;
    refill(level, now, this.#terms, burst);
    level.tokens -= Math.round(cost * MICRO);
    if (burst - level.tokens > this.#needed) this.#needed = burst - level.tokens;
  }

  /** Whether a key's bucket is full, so that a new one would do. */
  isUntouched(level: Level, now: Microseconds): boolean {
    refill(level, now, this.#terms, this.#terms.burst);
    return level.tokens >= this.#terms.burst;
  }

  get tokens(): Tokens {
    return this.#needed / MICRO;
  }
}
