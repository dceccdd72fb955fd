import type { Microseconds, MicroTokens } from '../../units.js';
import type { Bucket } from '../bucket.js';
import { refillTime } from '../exact.js';
import type { Moment, RefillRule } from './refill-rule.js';

/** Parts of a window within which what is spent is logged together: a log has at most one entry more. */
const SLOTS = 256;

/**
 * At most N in every window of this length, wherever it begins. What holders report as spent, and what the end of a lease
 * counts as spent, is logged with the store's time, and comes back when the entry is as old as the window is long:
 * T + O + logged ≤ N.
 *
 * **Why it holds.** A token that was spent at x was granted before x, so from x on it is outstanding, until it is logged at
 * some y ≥ x, and stays logged until y + length ≥ x + length. So at every t, all that was spent in (t − length, t] is
 * outstanding or logged, and that is at most N.
 *
 * What is reported within 1/256 of the length is one entry, dated with its last report: tokens may come back so much
 * later than they could, never earlier. Where reports are further apart each is its own entry.
 *
 * A refund of what was spent at x or later lowers the oldest entries from x on. Whatever was spent at x is in one of
 * them, and the older the entry that is lowered, the sooner it would have come back by itself: so no window ever has less
 * logged than was spent in it. Lowering the newest would pay early for what had been spent before them.
 *
 * Data that is young may have been preceded by N spent tokens: an entry of N, dated with its birth (or, under the strict
 * rule, the end of the guard). Twin: `lua/sliding-log.lua`.
 */
export const slidingLog: RefillRule = {
  atOnce: false,

  begin(bucket, _call, _fence, moment) {
    if (moment.bornAt > 0 && born(moment) + bucket.length > moment.now) append(bucket, bucket.burst, born(moment));
    bucket.level.at = moment.now;
    balance(bucket);
  },

  refill(bucket, _call, { now }) {
    const { window, length } = bucket;
    let left = 0;
    while (left < window.times.length && (window.times[left] as number) + length <= now) {
      window.current -= window.amounts[left] as number;
      left += 1;
    }
    if (left > 0) {
      window.times.splice(0, left);
      window.amounts.splice(0, left);
    }
    bucket.level.at = Math.max(bucket.level.at, now);
    balance(bucket);
  },

  settle(bucket, { refundSince }, { now }) {
    if (bucket.spent > 0) append(bucket, bucket.spent, now);
    takeOut(bucket, refundSince);
    balance(bucket);
  },

  wait(bucket, head, { now }) {
    const { window, length, level } = bucket;
    let missing = head - level.tokens;
    if (missing <= 0) return 0;
    let at = now;
    for (let i = 0; missing > 0 && i < window.times.length; i++) {
      missing -= window.amounts[i] as number;
      at = (window.times[i] as number) + length;
    }
    // What is outstanding may come back at any time: as if at the rate.
    return Math.max(at - now, missing > 0 ? refillTime(missing, bucket) : 0);
  },

  suspect(bucket, moment) {
    const { window } = bucket;
    const logged = bucket.burst - bucket.outstanding - Math.min(bucket.level.tokens, 0);
    window.times.length = 0;
    window.amounts.length = 0;
    window.current = 0;
    if (logged > 0) append(bucket, logged, born(moment));
    balance(bucket);
  },

  rebase(bucket, _call, now) {
    const { window } = bucket;
    window.times = window.times.map((time) => Math.min(time, now));
    window.lastFrom = Math.min(window.lastFrom, now);
    bucket.level.at = now;
  },

  adopt() {},

  fullAt({ window, length, outstanding, lastEnd }, { now }) {
    const last = window.times.at(-1);
    return Math.max(last === undefined ? now : last + length, outstanding > 0 ? lastEnd + length : now);
  },

  leaseWithin(_bucket, lease) {
    return lease;
  },
};

function balance({ level, burst, outstanding, window }: Bucket): void {
  level.tokens = burst - outstanding - window.current;
}

/** Takes the refund out of the oldest entries that it can be in. */
function takeOut({ window, refund }: Bucket, since: Microseconds): void {
  let rest = refund;
  for (let i = 0; rest > 0 && i < window.times.length; i++) {
    if ((window.times[i] as number) < since) continue;
    const part = Math.min(rest, window.amounts[i] as number);
    window.amounts[i] = (window.amounts[i] as number) - part;
    window.current -= part;
    rest -= part;
  }
}

function append({ window, length }: Bucket, tokens: MicroTokens, at: Microseconds): void {
  const last = window.times.length - 1;
  window.current += tokens;
  if (last >= 0 && at - window.lastFrom < Math.ceil(length / SLOTS)) {
    window.times[last] = Math.max(window.times[last] as number, at);
    window.amounts[last] = (window.amounts[last] as number) + tokens;
  } else {
    window.times.push(at);
    window.amounts.push(tokens);
    window.lastFrom = at;
  }
}

function born({ bornAt, until }: Moment): Microseconds {
  return Math.max(bornAt, until);
}
