import type { Microseconds } from '../../units.js';
import type { Bucket } from '../bucket.js';
import { MAX_SKEW_US } from '../ceiling-store.js';
import type { Cut, RefillRule } from './refill-rule.js';

/**
 * A grant that could be spent for less than this is not made: it would end on its way, and be lost for the window.
 */
export const SHORTEST_LEASE_US: Microseconds = 5_000;

/**
 * At most N in each window by the store's clock. T is N when a window begins, and only ever lowered in it: by grants,
 * which returns undo. So T + O + spent ≤ N; and no lease outlives its window, so what is granted in a window is spent in
 * it. A lease is cut at its window's end less an edge of 1 % of its length and of {@link edge}, for the drift and the
 * steps of clocks: in the edge before its end nothing is granted any more, and what is left of the window is lost.
 *
 * A refund comes back into the window it was spent in, while that is under way; into none where it was spent before it.
 *
 * Data that was born in a window gives nothing in it: nobody knows what had been spent. Twin: `lua/fixed-window.lua`.
 */
export const fixedWindow: RefillRule = {
  atOnce: true,

  begin(bucket, call, _fence, { bornAt, now }) {
    open(bucket, call, bornAt, now);
    bucket.level.at = now;
  },

  refill(bucket, call, { bornAt, now }) {
    if (now >= bucket.window.end) {
      // All leases have ended with their window; records are cleared as they are come across.
      bucket.outstanding = 0;
      open(bucket, call, bornAt, now);
    }
    bucket.level.at = Math.max(bucket.level.at, now);
  },

  settle({ level, burst, outstanding, refund, window }, { refundSince }) {
    if (refundSince === 0 || refundSince >= window.start) level.tokens += refund;
    level.tokens = Math.min(level.tokens, burst - outstanding);
  },

  wait(bucket, head, { now }) {
    const { window, length, level } = bucket;
    const canSpend = leaseLeft(window.end, length, Number.MAX_SAFE_INTEGER, now) > 0;
    return level.tokens >= head && canSpend ? 0 : window.end - now;
  },

  suspect({ level }) {
    level.tokens = Math.min(level.tokens, 0);
  },

  rebase(bucket, call, now) {
    // The window that now lies in, with what is left of the one that was under way.
    if (now < bucket.window.start) setWindow(bucket, call, now);
    bucket.clearedAt = Math.min(bucket.clearedAt, now);
    bucket.level.at = now;
  },

  adopt(bucket, fence) {
    // The window under way goes on to its end, with the new limit.
    bucket.level.tokens += fence.burst - bucket.burst;
  },

  fullAt({ window }) {
    return window.end;
  },

  leaseWithin({ length }, lease, now, end) {
    return leaseLeft(end, length, lease, now);
  },
};

/** Whether a call about `bucket` (or none yet) says nothing of the window that now lies in, where that must be known. */
export function lacksWindow(bucket: Bucket | undefined, { window }: Cut, now: Microseconds): boolean {
  if (window?.rule !== 'calendar' || (bucket && now < bucket.window.end)) return false;
  return now < window.start || now >= window.end;
}

function open(bucket: Bucket, call: Cut, bornAt: Microseconds, now: Microseconds): void {
  const { window } = bucket;
  setWindow(bucket, call, now);
  bucket.clearedAt = window.start;
  if (call.window?.rule === 'first-use' && bornAt > 0 && now < bornAt + bucket.length) {
    // A window of before the birth may still be under way.
    window.end = bornAt + bucket.length;
    bucket.level.tokens = 0;
  } else {
    bucket.level.tokens = bornAt > window.start ? 0 : bucket.burst;
  }
}

function setWindow({ window, length }: Bucket, call: Cut, now: Microseconds): void {
  if (call.window?.rule === 'calendar') {
    // A clock that stepped back may be out of the call's window; then it is as long as there is no better one.
    const lies = now >= call.window.start && now < call.window.end;
    window.start = lies ? call.window.start : now;
    window.end = lies ? call.window.end : now + length;
  } else {
    window.start = call.window?.rule === 'first-use' ? now : now - (now % length);
    window.end = window.start + length;
  }
}

/** How much of a lease asked for at `now` fits in before `end`, with its allowances. */
function leaseLeft(end: Microseconds, length: Microseconds, lease: Microseconds, now: Microseconds): Microseconds {
  const left = end - now - edge(length);
  if (lease + Math.ceil(lease / 100) <= left) return lease;
  const short = Math.floor(left / 1.01);
  return short < SHORTEST_LEASE_US ? 0 : short;
}

/** How far the store's clock may step within a window: 1 % of it, and at most `maxSkew`. */
function edge(length: Microseconds): Microseconds {
  return Math.min(MAX_SKEW_US, Math.ceil(length / 100));
}
