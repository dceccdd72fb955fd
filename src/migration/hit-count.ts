import { CeilingError } from '../errors.js';
import { quotaOf } from '../http/index.js';
import type { AlgorithmTerms, Decision, DenialReason, Policy } from '../index.js';
import { termsFor } from '../policy/policy.js';
import { MICROS_PER_MS, type Milliseconds, type Tokens } from '../units.js';

/** A decision in the words of middleware that counts hits in a window, and denies once they are more than its limit. */
export interface HitCount {
  /** Whole: above the middleware's limit exactly where the request is denied. */
  readonly hits: number;
  /** Denied: when to come back. Allowed: when all of the limit is there again. `undefined`: nobody knows. */
  readonly resetAfterMs: Milliseconds | undefined;
}

/** More than any limit, for a denial where the middleware has not told its own. */
const ABOVE_EVERY_LIMIT = Number.MAX_SAFE_INTEGER;

/** Of a part of the calendar, next to its usual length: a month may have 31 days and not 30, and a day 25 hours. */
const LONGEST_OF_USUAL = 1.05;

/** What is no judgement of the request: the store has not answered, or the limiter is closed. */
const UNDECIDED: ReadonlySet<DenialReason> = new Set(['cold', 'expired', 'degraded', 'closed']);

/**
 * The count that makes the middleware do what the decision says, and tell its clients no more than is certain: what it
 * computes as remaining, its limit less the hits, is never above the decision's.
 *
 * @param key whose terms they are, of `policy`
 * @param limit what the middleware compares hits with; `undefined` where it has not told
 */
export function hitCountOf(decision: Decision, policy: Policy, key: string, limit?: number): HitCount {
  if (!decision.allowed) {
    const hits = limit === undefined ? ABOVE_EVERY_LIMIT : Math.floor(limit) + 1;
    return { hits, resetAfterMs: decision.retryAfterMs };
  }
  const { hits, resetAfterMs } = countSoFar(decision, policy, key, limit);
  return { hits: Math.max(1, hits), resetAfterMs };
}

/** The count as it stands, of which no request has just become a part: 0 where all of the limit is there. */
export function countSoFar(decision: Decision, policy: Policy, key: string, limit = decision.limit): HitCount {
  const most = Math.floor(limit);
  // Under the mode `allow` nothing is counted, and infinitely much is left.
  const used = decision.remaining === Number.POSITIVE_INFINITY ? 0 : most - decision.remaining;
  return {
    hits: Math.max(0, Math.min(most, used)),
    resetAfterMs: decision.resetAfterMs ?? untilFull(decision.remaining, policy, key),
  };
}

/**
 * The error that the middleware is to be told in place of a count, where nothing was decided: it has an option of its own
 * for a store that fails, and otherwise answers with the error's status.
 */
export function failureOf(decision: Decision): Error | undefined {
  if (decision.allowed || !UNDECIDED.has(decision.reason)) return undefined;
  const error = new CeilingError(`The ceiling of "${decision.policy}" could not be asked: ${decision.reason}.`);
  return Object.assign(error, { statusCode: 503 });
}

/** Whole milliseconds in which all of the limit is there of which `remaining` is now, at the latest. */
function untilFull(remaining: Tokens, policy: Policy, key: string): Milliseconds | undefined {
  const terms = termsFor(policy, key);
  const quota = quotaOf(terms);
  if (quota === undefined || remaining >= quota.tokens) return quota && 0;
  const earned = Math.ceil(((quota.tokens - remaining) / quota.tokensPerSecond) * 1_000);
  return Math.max(earned, memoryOf(terms.local), memoryOf(terms.ceiling));
}

/** How long it takes a window to forget what was taken; 0 for buckets, which earn it evenly. */
function memoryOf(tier: AlgorithmTerms | undefined): Milliseconds {
  switch (tier?.algorithm) {
    case 'fixed-window': {
      const { by, length } = tier.windows;
      return Math.ceil((by === 'calendar' ? LONGEST_OF_USUAL * length : length) / MICROS_PER_MS);
    }
    case 'sliding-window-log':
      return Math.ceil(tier.length / MICROS_PER_MS);
    case 'sliding-window-counter':
      return Math.ceil((2 * tier.length) / MICROS_PER_MS);
    default:
      return 0;
  }
}
