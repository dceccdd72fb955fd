import type { CeilingTerms } from '../policy/policy.js';
import type { Microseconds, MicroTokens } from '../units.js';

/** An exact fraction of whole numbers: `quotient`, and `remainder` over the divisor it was made with. */
export interface Division {
  quotient: number;
  remainder: number;
}

/**
 * `a · b + carry` divided by `divisor`, exactly, though the product may pass 2^53. All whole and not negative; `carry`
 * and the divisor below 2^52, `carry < divisor`, and the quotient below 2^53.
 */
export function multiplyDivide(a: number, b: number, divisor: number, carry: number): Division {
  const rest = a % divisor;
  const whole = ((a - rest) / divisor) * b;
  const product = rest * b + carry;
  if (product <= Number.MAX_SAFE_INTEGER) {
    const remainder = product % divisor;
    return { quotient: whole + (product - remainder) / divisor, remainder };
  }
  // Long multiplication by the bits of b, reduced at each step, so that nothing ever passes 2^53.
  let quotient = 0;
  let remainder = 0;
  let left = b;
  for (let bit = 2 ** 52; bit >= 1; bit /= 2) {
    quotient *= 2;
    remainder *= 2;
    if (remainder >= divisor) {
      remainder -= divisor;
      quotient += 1;
    }
    if (left >= bit) {
      left -= bit;
      remainder += rest;
      if (remainder >= divisor) {
        remainder -= divisor;
        quotient += 1;
      }
    }
  }
  remainder += carry;
  if (remainder >= divisor) {
    remainder -= divisor;
    quotient += 1;
  }
  return { quotient: whole + quotient, remainder };
}

/** What a bucket holds at a moment: whole micro-tokens, and what is left over of the last refill, over `rateDen`. */
export interface Level {
  tokens: MicroTokens;
  remainder: number;
  /** Up to when refill has been paid. */
  at: Microseconds;
}

/**
 * The one place that turns elapsed time into tokens: brings `level` up to `now`, holding at most `cap`. Time that went
 * backwards pays nothing and leaves `at` where it is. Cutting a span in pieces changes nothing (rule 12).
 *
 * A bucket that reaches its cap is full as of the *next* microsecond: the one under way began before the clock was
 * read, so paying for it would hand out up to one microsecond of refill that a full bucket had no room for.
 */
export function refill(level: Level, now: Microseconds, terms: CeilingTerms, cap: MicroTokens): void {
  const elapsed = now - level.at;
  if (elapsed > 0) {
    const room = cap - level.tokens;
    // Rounded, and so only asked whether it is far beyond the room; it keeps the exact arithmetic within its range.
    const about = (elapsed / terms.rateDen) * terms.rateNum;
    if (about > room * 1.001 + 1) {
      level.tokens = cap + 1;
    } else {
      const gained = multiplyDivide(elapsed, terms.rateNum, terms.rateDen, level.remainder);
      level.tokens += gained.quotient;
      level.remainder = gained.remainder;
    }
    level.at = now;
  }
  capAt(level, now, cap);
}

/** Takes away what is above `cap`; see {@link refill} for the microsecond. */
export function capAt(level: Level, now: Microseconds, cap: MicroTokens): void {
  if (level.tokens < cap || (level.tokens === cap && level.at > now)) return;
  level.tokens = cap;
  level.remainder = 0;
  if (level.at <= now) level.at = now + 1;
}

/** No span is taken to be longer (71 years), so that a moment plus a span or two stays a whole number below 2^53. */
export const LONGEST_US: Microseconds = 2 ** 51;

/**
 * Microseconds in which `missing` micro-tokens are refilled: never too few (but for {@link LONGEST_US}), at most one
 * too many; 0 for none.
 */
export function refillTime(missing: MicroTokens, terms: CeilingTerms): Microseconds {
  return missing > 0 ? Math.min(LONGEST_US, Math.ceil((missing / terms.rateNum) * terms.rateDen) + 1) : 0;
}
