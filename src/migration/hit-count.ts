import { CeilingError } from '../errors.js';
import { quotaOf } from '../http/index.js';
import type { Decision, DenialReason, Policy } from '../index.js';
import type { Milliseconds, Tokens } from '../units.js';

/** A decision in the words of middleware that counts hits in a window, and denies once they are more than its limit. */
export interface HitCount {
  /** Whole: above the middleware's limit exactly where the request is denied. */
  readonly hits: number;
  /** Denied: when to come back. Allowed: when all of the limit is there again. `undefined`: nobody knows. */
  readonly resetAfterMs: Milliseconds | undefined;
}

/** More than any limit, for a denial where the middleware has not told its own. */
const ABOVE_EVERY_LIMIT = Number.MAX_SAFE_INTEGER;

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

/** Whole milliseconds in which a bucket that has no more than `remaining` is full again; it may well be so earlier. */
function untilFull(remaining: Tokens, policy: Policy, key: string): Milliseconds | undefined {
  const quota = quotaOf(policy.overrides.get(key) ?? policy.terms);
  return quota && Math.ceil((Math.max(0, quota.tokens - remaining) / quota.tokensPerSecond) * 1_000);
}
