import { capAt, refillTime } from '../exact.js';
import { inherit, untouchedLevel } from '../fence.js';
import { capUnder, heldReady, refillGuarded } from '../guard.js';
import type { RefillRule } from './refill-rule.js';

/** Tokens come back at the rate, all the time: T + O ≤ B, and so every window is bounded by B + R·w. */
export const tokenBucket: RefillRule = {
  atOnce: false,

  begin(bucket, _call, fence, { bornAt, now }) {
    bucket.level = untouchedLevel(fence, bornAt, now);
  },

  refill(bucket, _call, { until, now }) {
    refillGuarded(bucket.level, now, bucket, bucket.outstanding, until);
  },

  settle(bucket, _since, { until, now }) {
    bucket.level.tokens += bucket.refund;
    capAt(bucket.level, now, capUnder(bucket.burst, bucket.outstanding, until, now));
  },

  wait(bucket, head, { until, now }) {
    const short = refillTime(head - bucket.level.tokens, bucket);
    const guarded = bucket.burst - heldReady(bucket.burst);
    return now < until && head > guarded ? Math.max(short, until - now + refillTime(head - guarded, bucket)) : short;
  },

  suspect({ level }, { bornAt }) {
    // The gap in which the data was not current is not paid as refill.
    level.tokens = Math.min(level.tokens, 0);
    level.remainder = 0;
    level.at = Math.max(level.at, bornAt);
  },

  rebase(bucket, _call, now) {
    bucket.level.at = now;
  },

  adopt(bucket, fence, now) {
    inherit(bucket.level, now, fence.burstBefore, fence.burst, fence.inheritance, bucket.outstanding);
  },

  fullAt(bucket, { until, now }) {
    // What is kept low by the guard does not begin to fill up before it is over.
    return Math.max(
      Math.max(now, until) + refillTime(bucket.burst - bucket.level.tokens, bucket),
      bucket.lastEnd + refillTime(bucket.outstanding, bucket),
    );
  },

  leaseWithin(_bucket, lease) {
    return lease;
  },
};
