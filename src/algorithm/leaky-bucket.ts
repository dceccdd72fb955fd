import type { MicroTokens, Milliseconds } from '../units.js';
import { exactWait } from './wait.js';

/**
 * Requests leave evenly, one token's worth every 1 ÷ `microsPerMs`, however they come: a request of cost c keeps the next
 * one back for c ÷ rate. Time in which nobody came is lost, so there is never a burst.
 *
 * At most `queue` may wait; whoever would be more is refused.
 */
export interface LeakyBucketTerms {
  readonly microsPerMs: number;
  readonly queue: MicroTokens;
}

/** When the next request may leave. */
export interface LeakyBucket {
  freeAt: Milliseconds;
}

export function newLeakyBucket(): LeakyBucket {
  return { freeAt: Number.NEGATIVE_INFINITY };
}

/** Whether a request may leave at `now`. */
export function mayLeave(bucket: LeakyBucket, now: Milliseconds): boolean {
  return now >= bucket.freeAt;
}

/**
 * Lets a request leave, which has been seen to be allowed to. One that waited and was woken up to `lateMs` after its time
 * counts as having left on time: a timer's lateness must not slow the flow.
 */
export function leave(
  bucket: LeakyBucket,
  terms: LeakyBucketTerms,
  cost: MicroTokens,
  now: Milliseconds,
  lateMs: Milliseconds = 0,
): void {
  bucket.freeAt = Math.max(bucket.freeAt, now - lateMs) + cost / terms.microsPerMs;
}

/** Gives back the time that a request of `cost`, which did not go out after all, keeps the next one back. */
export function putBack(bucket: LeakyBucket, terms: LeakyBucketTerms, cost: MicroTokens, now: Milliseconds): void {
  if (bucket.freeAt > now) bucket.freeAt = Math.max(now, bucket.freeAt - cost / terms.microsPerMs);
}

/** Whole milliseconds until one that comes behind `ahead` others' worth may leave; 0: at once. Exact. */
export function waitFor(
  bucket: LeakyBucket,
  terms: LeakyBucketTerms,
  ahead: MicroTokens,
  now: Milliseconds,
): Milliseconds {
  const leaves = Math.max(bucket.freeAt, now) + ahead / terms.microsPerMs;
  return now >= leaves ? 0 : exactWait(leaves - now, now, (at) => at >= leaves);
}
