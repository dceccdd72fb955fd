import * as fixedWindow from '../algorithm/fixed-window.js';
import { leave, newLeakyBucket, waitFor } from '../algorithm/leaky-bucket.js';
import * as slidingWindowCounter from '../algorithm/sliding-window-counter.js';
import * as slidingWindowLog from '../algorithm/sliding-window-log.js';
import { fullBucket, levelAt, type TokenBucket, take } from '../algorithm/token-bucket.js';
import { type Level, refill } from '../ceiling/exact.js';
import { InvalidPolicyError } from '../errors.js';
import type { AlgorithmTerms, CeilingTier, LocalTier } from '../policy/policy.js';
import { MICRO, MICROS_PER_MS, type Microseconds, type MicroTokens, type Milliseconds, type Tokens } from '../units.js';

/**
 * One key's limit in one tier, met by past requests. This is all that a replay knows of an algorithm: whatever can say
 * these three things can be replayed. Times are those of a wall clock, and never go back.
 */
export interface Limit {
  /** Whether a request of this cost would pass, at once or after its turn has come. Takes nothing. */
  has(cost: Tokens, now: Microseconds): boolean;
  /** Takes the cost of a request that has been seen to pass. */
  take(cost: Tokens, now: Microseconds): void;
  /** Whether it is as good as a new one, so that it may be forgotten. */
  isUntouched(now: Microseconds): boolean;
}

/** Makes the limit of a key that is seen for the first time. */
export type NewLimit = (now: Microseconds) => Limit;

/** @throws InvalidPolicyError where the algorithm can't be replayed. */
export function localLimit(terms: LocalTier): NewLimit {
  if (terms.algorithm === 'token-bucket') return (now) => new LocalBucket(terms, now);
  return otherLimit('local', terms, Math.round(terms.burst * MICRO), terms.ratePerMs * MICRO);
}

/**
 * A ceiling is one limit for the whole fleet, as if every lease were as long as one request.
 *
 * @throws InvalidPolicyError where the algorithm can't be replayed.
 */
export function ceilingLimit(terms: CeilingTier): NewLimit {
  if (terms.algorithm === 'token-bucket') return (now) => new CeilingBucket(terms, now);
  return otherLimit('ceiling', terms, terms.burst, (terms.rateNum / terms.rateDen) * MICROS_PER_MS);
}

/** What is the same in both tiers. */
function otherLimit(tier: string, terms: AlgorithmTerms, limit: MicroTokens, microsPerMs: number): NewLimit {
  switch (terms.algorithm) {
    case 'leaky-bucket':
      return () => new LeakyQueue(microsPerMs, Math.round(terms.queue * MICRO));
    case 'fixed-window': {
      const own = { limit, windowEnd: fixedWindow.windowEnds(terms.windows) };
      return () => new Counted(fixedWindow, own, fixedWindow.newFixedWindow());
    }
    case 'sliding-window-log': {
      const own = { limit, windowMs: terms.length / MICROS_PER_MS };
      return () => new Counted(slidingWindowLog, own, slidingWindowLog.newSlidingWindowLog());
    }
    case 'sliding-window-counter': {
      const own = { limit, windowMs: terms.length / MICROS_PER_MS };
      return () => new Counted(slidingWindowCounter, own, slidingWindowCounter.newSlidingWindowCounter());
    }
    default:
      throw new InvalidPolicyError(
        `Expected \`${tier}\` to have an algorithm that can be replayed, got "${terms.algorithm}".`,
        { path: [tier, 'algorithm'] },
      );
  }
}

/** An algorithm that counts what was let through of a limit. */
interface Counting<Terms, State> {
  levelAt(state: State, terms: Terms, now: Milliseconds): MicroTokens;
  take(state: State, terms: Terms, cost: MicroTokens, now: Milliseconds): void;
}

class Counted<Terms extends { readonly limit: MicroTokens }, State> implements Limit {
  readonly #algorithm: Counting<Terms, State>;
  readonly #terms: Terms;
  readonly #state: State;

  constructor(algorithm: Counting<Terms, State>, terms: Terms, state: State) {
    this.#algorithm = algorithm;
    this.#terms = terms;
    this.#state = state;
  }

  has(cost: Tokens, now: Microseconds): boolean {
    return this.#level(now) >= Math.round(cost * MICRO);
  }

  take(cost: Tokens, now: Microseconds): void {
    this.#algorithm.take(this.#state, this.#terms, Math.round(cost * MICRO), now / MICROS_PER_MS);
  }

  isUntouched(now: Microseconds): boolean {
    return this.#level(now) >= this.#terms.limit;
  }

  #level(now: Microseconds): MicroTokens {
    return this.#algorithm.levelAt(this.#state, this.#terms, now / MICROS_PER_MS);
  }
}

/** A leaky bucket and those who wait for it: a log has come to its end when the last of them leaves. */
class LeakyQueue implements Limit {
  readonly #terms: { readonly microsPerMs: number; readonly queue: MicroTokens };
  readonly #bucket = newLeakyBucket();
  /** When each of those leaves who wait, the first of them first, and how much that is. */
  #waiting: { readonly leavesAt: Milliseconds; readonly cost: MicroTokens }[] = [];

  constructor(microsPerMs: number, queue: MicroTokens) {
    this.#terms = { microsPerMs, queue };
  }

  has(cost: Tokens, now: Microseconds): boolean {
    const ms = now / MICROS_PER_MS;
    const micro = Math.round(cost * MICRO);
    if (waitFor(this.#bucket, this.#terms, 0, ms) === 0) return micro <= Math.max(this.#terms.queue, MICRO);
    this.#waiting = this.#waiting.filter(({ leavesAt }) => leavesAt > ms);
    const ahead = this.#waiting.reduce((sum, { cost }) => sum + cost, 0);
    return ahead + micro <= this.#terms.queue;
  }

  take(cost: Tokens, now: Microseconds): void {
    const micro = Math.round(cost * MICRO);
    const leavesAt = Math.max(now / MICROS_PER_MS, this.#bucket.freeAt);
    if (leavesAt > now / MICROS_PER_MS) this.#waiting.push({ leavesAt, cost: micro });
    leave(this.#bucket, this.#terms, micro, leavesAt);
  }

  isUntouched(now: Microseconds): boolean {
    return this.#bucket.freeAt <= now / MICROS_PER_MS;
  }
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
