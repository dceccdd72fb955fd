import type { Microseconds, MicroTokens } from '../../units.js';
import type { Bucket } from '../bucket.js';
import type { Moment, RefillRule } from './refill-rule.js';

/**
 * At most N by the estimate of two counts: what was spent in the window under way, and of what was spent in the one
 * before the part of it that a window of this length ending now still covers. T + O + current + previous·left ≤ N.
 *
 * The estimate takes the spends of the previous window as spread evenly. Where they came late in it, a window that ends
 * now has more: at worst nearly 2 N pass within one length, as with fixed windows; where calls come at random it is within
 * a few per cent of the log (a test says how many). What is gained is size: two numbers, however long the window.
 *
 * A refund lowers the count of the window before, unless it is known to have been spent since, and only then the present
 * one: as in a log, the older, the less can be wrong with it.
 *
 * Windows begin at multiples of their length since 1970. Data that is young counts as if N had been spent in the window
 * of its birth (or of the end of the guard). Twin: `lua/sliding-counter.lua`.
 */
export const slidingCounter: RefillRule = {
  atOnce: false,

  begin(bucket, _call, _fence, moment) {
    const { window, length, burst } = bucket;
    align(bucket, moment.now);
    if (moment.bornAt > 0) {
      const birth = born(moment) - (born(moment) % length);
      if (birth >= window.start) {
        window.start = birth;
        window.current = burst;
      } else if (birth === window.start - length) {
        window.previous = burst;
      }
      window.end = window.start + length;
    }
    bucket.level.at = moment.now;
    balance(bucket, moment.now);
  },

  refill(bucket, _call, moment) {
    const { window, length } = bucket;
    if (moment.now >= window.end) {
      window.previous = moment.now < window.end + length ? window.current : 0;
      window.current = 0;
      align(bucket, moment.now);
    }
    bucket.level.at = Math.max(bucket.level.at, moment.now);
    balance(bucket, moment.now);
  },

  settle(bucket, { refundSince }, moment) {
    const { window, spent, refund } = bucket;
    const before = refundSince < window.start ? Math.min(refund, window.previous) : 0;
    window.previous -= before;
    window.current += spent;
    window.current -= Math.min(refund - before, window.current);
    balance(bucket, moment.now);
  },

  wait(bucket, head, { now }) {
    const { window, length, level } = bucket;
    const missing = head - level.tokens;
    if (missing <= 0) return 0;
    const counted = weighted(bucket, now);
    if (counted > missing + 1) {
      const part = (window.end - now) / length - (counted - missing - 1) / window.previous;
      return Math.min(window.end - now, Math.ceil(part * length) + 1);
    }
    // Not before the next window begins, and what this one has had then goes bit by bit.
    const later = missing - counted;
    const part = later > 0 && window.current > 0 ? Math.min(1, (later + 1) / window.current) : 0;
    return window.end - now + Math.ceil(part * length);
  },

  suspect(bucket, moment) {
    balance(bucket, moment.now);
    bucket.window.current += Math.max(0, bucket.level.tokens);
    balance(bucket, moment.now);
  },

  rebase(bucket, _call, now) {
    recount(bucket, now);
    bucket.level.at = now;
  },

  adopt(bucket, fence, now) {
    if (fence.length === bucket.length) return;
    bucket.length = fence.length;
    recount(bucket, now);
  },

  fullAt({ window, length, outstanding, lastEnd }, { now }) {
    return Math.max(
      window.current > 0 ? window.end + length : window.previous > 0 ? window.end : now,
      outstanding > 0 ? lastEnd + 2 * length : now,
    );
  },

  leaseWithin(_bucket, lease) {
    return lease;
  },
};

function balance(bucket: Bucket, now: Microseconds): void {
  const { level, burst, outstanding, window } = bucket;
  level.tokens = burst - outstanding - window.current - weighted(bucket, now);
}

/** What still counts of the previous window; one micro-token more than may be, for what rounding takes off. */
function weighted({ window, length }: Bucket, now: Microseconds): MicroTokens {
  if (window.previous === 0) return 0;
  return Math.min(window.previous, Math.floor(window.previous * ((window.end - now) / length)) + 1);
}

/** All that counts counts as of the window under way. */
function recount(bucket: Bucket, now: Microseconds): void {
  const { window } = bucket;
  window.current += window.previous;
  window.previous = 0;
  align(bucket, now);
}

function align({ window, length }: Bucket, now: Microseconds): void {
  window.start = now - (now % length);
  window.end = window.start + length;
}

function born({ bornAt, until }: Moment): Microseconds {
  return Math.max(bornAt, until);
}
