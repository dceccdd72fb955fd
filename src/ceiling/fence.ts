import type { Inheritance } from '../policy/policy.js';
import type { Microseconds, MicroTokens } from '../units.js';
import type { StoredTerms } from './bucket.js';
import type { LeaseCall } from './ceiling-store.js';
import { MAX_SKEW_US } from './ceiling-store.js';
import { capAt, type Level, multiplyDivide, refillTime } from './exact.js';
import { guardedUntil, refillGuarded } from './guard.js';

/**
 * The terms in force for one policy (or override) in one partition, and the level of a bucket nobody has touched under
 * them. Kept without expiry, so that it outlives every bucket (rule 9).
 */
export interface Fence extends StoredTerms {
  version: number;
  burst: MicroTokens;
  rateNum: number;
  rateDen: number;
  length: Microseconds;
  /** How buckets of older terms are carried over to these. */
  inheritance: Inheritance;
  /**
   * The burst before the last change of terms. A bucket that has missed some changes is given what the last one hands out
   * and no more: reckoned from its own burst it would be paid for changes that were to hand out nothing.
   */
  burstBefore: MicroTokens;
  /** Longest guard that a caller has asked for; 0: nobody asks for the strict rule. */
  guard: Microseconds;
  /** When a `reset` was last granted; 0: never. */
  resetAt: Microseconds;
  /** When a caller last stood for these terms while others came with looser ones; 0: nobody has. */
  assertedAt: Microseconds;
  untouched: Level;
}

/** How long the stricter of two terms under one version stays in force after nobody has asked for it any more. */
export const CONTEST_US: Microseconds = 60_000_000;
/** How often a call that stands for contested terms says so in the header. */
const ASSERT_EVERY_US: Microseconds = 5_000_000;

/** The fence of a policy that this partition has not seen: what refill has earned since the store's data was born. */
export function newFence(call: LeaseCall, bornAt: Microseconds, now: Microseconds, full: boolean): Fence {
  const fence: Fence = {
    version: call.version,
    burst: call.burst,
    rateNum: call.rateNum,
    rateDen: call.rateDen,
    length: lengthOf(call),
    inheritance: call.inheritance,
    burstBefore: call.burst,
    guard: call.guard,
    resetAt: 0,
    assertedAt: 0,
    untouched: { tokens: full ? call.burst : 0, remainder: 0, at: Math.min(bornAt, now) },
  };
  refillGuarded(fence.untouched, now, fence, 0, guardedUntil(fence.guard, bornAt));
  return fence;
}

/** What {@link meetFence} found: whether the header must be written, and whether terms of one version disagree. */
export interface FenceMeeting {
  changed: boolean;
  conflict: boolean;
}

/**
 * Holds a call's terms against the fence. A higher version takes over at once; a lower one changes nothing; under the
 * same version the stricter rate and burst win, for as long as anybody stands for them.
 */
export function meetFence(fence: Fence, call: LeaseCall, bornAt: Microseconds, now: Microseconds): FenceMeeting {
  let changed = stepBack(fence, now);
  // Under one version the stricter wins here too, and for good: who still holds tokens under the other is not known.
  if (call.version === fence.version && call.guard > fence.guard) {
    fence.guard = call.guard;
    changed = true;
  }
  const until = guardedUntil(fence.guard, bornAt);
  if (call.version > fence.version) {
    let inheritance = call.inheritance;
    if (inheritance === 'reset') {
      // A full burst for the asking, twice within the time it takes to earn one, would double the rate.
      if (fence.resetAt > 0 && now - fence.resetAt < refillTime(call.burst, call)) inheritance = 'as-is';
      else fence.resetAt = now;
    }
    fence.version = call.version;
    fence.assertedAt = 0;
    fence.inheritance = inheritance;
    changeTerms(fence, termsOf(call), until, now);
    fence.guard = call.guard;
    return { changed: true, conflict: false };
  }
  const terms = termsOf(call);
  if (call.version < fence.version || sameTerms(fence, terms)) {
    if (call.version === fence.version && fence.assertedAt > 0 && now - fence.assertedAt > ASSERT_EVERY_US) {
      fence.assertedAt = now;
      changed = true;
    }
    return { changed, conflict: false };
  }
  const slower = call.rateNum / call.rateDen < fence.rateNum / fence.rateDen;
  const smaller = call.burst < fence.burst;
  if (slower || smaller) {
    fence.assertedAt = now;
    fence.inheritance = 'as-is';
    const rate = slower ? terms : fence;
    changeTerms(
      fence,
      { burst: smaller ? call.burst : fence.burst, rateNum: rate.rateNum, rateDen: rate.rateDen, length: rate.length },
      until,
      now,
    );
    return { changed: true, conflict: true };
  }
  const standsForPart = call.burst === fence.burst || sameRate(fence, terms);
  if (fence.assertedAt === 0 || standsForPart) {
    if (fence.assertedAt === 0 || now - fence.assertedAt > ASSERT_EVERY_US) {
      fence.assertedAt = now;
      changed = true;
    }
  } else if (now - fence.assertedAt > CONTEST_US) {
    fence.assertedAt = 0;
    fence.inheritance = 'as-is';
    changeTerms(fence, terms, until, now);
    return { changed: true, conflict: false };
  }
  return { changed, conflict: true };
}

/** The untouched bucket as it stands at `now`; the fence itself is left alone. */
export function untouchedLevel(fence: Fence, bornAt: Microseconds, now: Microseconds): Level {
  const level = { ...fence.untouched };
  refillGuarded(level, now, fence, 0, guardedUntil(fence.guard, bornAt));
  return level;
}

/** Whether a level counts under the same terms as the fence. */
export function sameTerms(a: StoredTerms, b: StoredTerms): boolean {
  return a.burst === b.burst && sameRate(a, b);
}

/**
 * Carries the tokens of a bucket over from one burst to another. The result never exceeds `to − outstanding`; below
 * zero it may go, where `additive` takes more than there is.
 */
export function inherit(
  level: Level,
  now: Microseconds,
  from: MicroTokens,
  to: MicroTokens,
  inheritance: Inheritance,
  outstanding: MicroTokens,
): void {
  if (inheritance === 'proportional' && level.tokens > 0) {
    level.tokens = multiplyDivide(level.tokens, to, from, 0).quotient;
  } else if (inheritance === 'additive') {
    level.tokens += to - from;
  } else if (inheritance === 'reset') {
    level.tokens = Math.max(level.tokens, 0) + to;
  }
  level.remainder = 0;
  capAt(level, now, to - outstanding);
}

function changeTerms(fence: Fence, to: StoredTerms, until: Microseconds, now: Microseconds): void {
  refillGuarded(fence.untouched, now, fence, 0, until);
  fence.burstBefore = fence.burst;
  fence.burst = to.burst;
  fence.rateNum = to.rateNum;
  fence.rateDen = to.rateDen;
  fence.length = to.length;
  inherit(fence.untouched, now, fence.burstBefore, fence.burst, fence.inheritance, 0);
}

/**
 * A store clock that stepped back by more than the allowance re-bases the untouched level, as it does a bucket.
 * Answers whether anything changed: what is not written is not remembered.
 */
function stepBack(fence: Fence, now: Microseconds): boolean {
  const { assertedAt, resetAt } = fence;
  fence.assertedAt = Math.min(assertedAt, now);
  fence.resetAt = Math.min(resetAt, now);
  const rebased = fence.untouched.at - now > MAX_SKEW_US;
  if (rebased) fence.untouched.at = now;
  return rebased || fence.assertedAt < assertedAt || fence.resetAt < resetAt;
}

/** A rate counts as the same only over windows of the same length. */
function sameRate(a: StoredTerms, b: StoredTerms): boolean {
  return a.rateNum === b.rateNum && a.rateDen === b.rateDen && a.length === b.length;
}

function termsOf(call: LeaseCall): StoredTerms {
  return { burst: call.burst, rateNum: call.rateNum, rateDen: call.rateDen, length: lengthOf(call) };
}

function lengthOf({ window }: LeaseCall): Microseconds {
  return window ? window.length : 0;
}
