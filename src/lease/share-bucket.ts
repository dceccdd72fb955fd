import type { Milliseconds, Tokens } from '../units.js';

/**
 * What one instance of a fleet may admit by itself while nobody can reach the ceiling: an equal share of its rate, and
 * no more at once than the one request asks for. Starts empty when the last lease ends, so that what was still in
 * wallets and what is admitted here never add up to more than the ceiling's own burst and rate.
 */
export interface ShareBucket {
  tokens: Tokens;
  at: Milliseconds;
}

/** A bucket that has nothing until `startsAt` and earns from then on. */
export function newShareBucket(startsAt: Milliseconds): ShareBucket {
  return { tokens: 0, at: startsAt };
}

/** Takes `cost` if it has been earned at `ratePerMs`. */
export function takeShare(bucket: ShareBucket, cost: Tokens, ratePerMs: number, now: Milliseconds): boolean {
  const elapsed = Math.max(0, now - bucket.at);
  const tokens = Math.min(cost, bucket.tokens + elapsed * ratePerMs);
  if (tokens < cost) return false;
  bucket.tokens = 0;
  bucket.at = now;
  return true;
}

/** Milliseconds until `cost` will have been earned, rounded up. */
export function shareWait(bucket: ShareBucket, cost: Tokens, ratePerMs: number, now: Milliseconds): Milliseconds {
  return Math.max(1, Math.ceil((cost - bucket.tokens) / ratePerMs - (now - bucket.at)));
}
