import type { LocalTerms } from '../policy/policy.js';
import type { Milliseconds, Tokens } from '../units.js';
import { exactWait } from './wait.js';

/**
 * A token bucket as two numbers: `tokens` held at the time `at`. It gains `ratePerMs` continuously and holds at most
 * `burst`. Denials write nothing, so the time that a caller was told to wait is never cut in pieces.
 */
export interface TokenBucket {
  tokens: Tokens;
  at: Milliseconds;
}

/** A full bucket. */
export function fullBucket(terms: LocalTerms, now: Milliseconds): TokenBucket {
  return { tokens: terms.burst, at: now };
}

/** Tokens held at `now`. Time that went backwards pays nothing, and is not paid again when it comes round once more. */
export function levelAt(bucket: TokenBucket, terms: LocalTerms, now: Milliseconds): Tokens {
  const elapsed = now - bucket.at;
  if (elapsed <= 0) return Math.min(bucket.tokens, terms.burst);
  const tokens = bucket.tokens + elapsed * terms.ratePerMs;
  return Math.min(tokens, terms.burst);
}

/** Takes `cost` out of a bucket whose level at `now` is `level`, and has been seen to be enough. */
export function take(bucket: TokenBucket, level: Tokens, cost: Tokens, now: Milliseconds): void {
  bucket.tokens = level - cost;
  if (now > bucket.at) bucket.at = now;
}

/**
 * Whole milliseconds until `cost` is there if nobody else takes any; 0 if it is. Exact: the call at `now` + this is
 * allowed, the call a millisecond earlier is not, whatever the rounding of the division said.
 */
export function waitFor(bucket: TokenBucket, terms: LocalTerms, cost: Tokens, now: Milliseconds): Milliseconds {
  if (levelAt(bucket, terms, now) >= cost) return 0;
  const guess = (cost - bucket.tokens) / terms.ratePerMs - (now - bucket.at);
  return exactWait(guess, now, (at) => levelAt(bucket, terms, at) >= cost);
}
