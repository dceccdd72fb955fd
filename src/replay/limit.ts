import { fullBucket, levelAt, type TokenBucket, take } from '../algorithm/token-bucket.js';
import { type Level, refill } from '../ceiling/exact.js';
import { InvalidPolicyError } from '../errors.js';
import type { Algorithm, CeilingTier, LocalTier } from '../policy/policy.js';
import { MICRO, MICROS_PER_MS, type Microseconds, type Tokens } from '../units.js';

/**
 * One key's limit in one tier, met by past requests. This is all that a replay knows of an algorithm: whatever can say
 * these three things can be replayed. Times never go back.
 */
export interface Limit {
  /** Whether a request of this cost would pass. Takes nothing. */
  has(cost: Tokens, now: Microseconds): boolean;
  /** Takes the cost of a request that has been seen to pass. */
  take(cost: Tokens, now: Microseconds): void;
  /** Whether it is as good as a new one, so that it may be forgotten. */
  isUntouched(now: Microseconds): boolean;
}

/** Makes the limit of a key that is seen for the first time. */
export type NewLimit = (now: Microseconds) => Limit;

/** The algorithms that can be replayed, each by the production code of its tier. */
const LOCAL: { readonly [A in Algorithm]?: (terms: LocalTier) => NewLimit } = {
  'token-bucket': (terms) => (now) => new LocalBucket(terms, now),
};
const CEILING: { readonly [A in Algorithm]?: (terms: CeilingTier) => NewLimit } = {
  'token-bucket': (terms) => (now) => new CeilingBucket(terms, now),
};

/** @throws InvalidPolicyError where the algorithm can't be replayed. */
export function localLimit(terms: LocalTier): NewLimit {
  return chosen(LOCAL, 'local', terms.algorithm)(terms);
}

/** @throws InvalidPolicyError where the algorithm can't be replayed. */
export function ceilingLimit(terms: CeilingTier): NewLimit {
  return chosen(CEILING, 'ceiling', terms.algorithm)(terms);
}

function chosen<T>(known: Readonly<Partial<Record<Algorithm, T>>>, tier: 'local' | 'ceiling', algorithm: Algorithm): T {
  const found = known[algorithm];
  if (found !== undefined) return found;
  throw new InvalidPolicyError(
    `Expected \`${tier}\` to have an algorithm that a replay knows (${Object.keys(known).join(', ')}), got "${algorithm}".`,
    { path: [tier, 'algorithm'] },
  );
}

/** The bucket of an instance, in floating point. */
class LocalBucket implements Limit {
  readonly #terms: LocalTier;
  readonly #bucket: TokenBucket;

  constructor(terms: LocalTier, now: Microseconds) {
    this.#terms = terms;
    this.#bucket = fullBucket(terms, now / MICROS_PER_MS);
  }

  has(cost: Tokens, now: Microseconds): boolean {
    return levelAt(this.#bucket, this.#terms, now / MICROS_PER_MS) >= cost;
  }

  take(cost: Tokens, now: Microseconds): void {
    const ms = now / MICROS_PER_MS;
    take(this.#bucket, levelAt(this.#bucket, this.#terms, ms), cost, ms);
  }

  isUntouched(now: Microseconds): boolean {
    return levelAt(this.#bucket, this.#terms, now / MICROS_PER_MS) >= this.#terms.burst;
  }
}

/** The fleet's bucket, in whole micro-tokens, as the ledger refills it: exact, and of one piece. */
class CeilingBucket implements Limit {
  readonly #terms: CeilingTier;
  readonly #level: Level;

  constructor(terms: CeilingTier, now: Microseconds) {
    this.#terms = terms;
    this.#level = { tokens: terms.burst, remainder: 0, at: now };
  }

  has(cost: Tokens, now: Microseconds): boolean {
    refill(this.#level, now, this.#terms, this.#terms.burst);
    return this.#level.tokens >= Math.round(cost * MICRO);
  }

  take(cost: Tokens, now: Microseconds): void {
    refill(this.#level, now, this.#terms, this.#terms.burst);
    this.#level.tokens -= Math.round(cost * MICRO);
  }

  isUntouched(now: Microseconds): boolean {
    refill(this.#level, now, this.#terms, this.#terms.burst);
    return this.#level.tokens >= this.#terms.burst;
  }
}
