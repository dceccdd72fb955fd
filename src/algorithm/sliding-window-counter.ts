import type { MicroTokens, Milliseconds } from '../units.js';
import { exactWait } from './wait.js';

/**
 * About `limit` in every window of `windowMs`, in two numbers: what was charged in this window of a fixed grid, and in
 * the one before. The window that ends now is taken to hold the last part of the previous one as if its charges had been
 * spread evenly:
 *
 *     estimate = current + previous · (1 − f)        f: how much of the current window has passed, 0 to 1
 *
 * Its error is that assumption. Of the previous window anything from 0 to all of it may really lie in the last part, so
 * the estimate is off by −previous·f to +previous·(1 − f), and a window can hold nearly 2 · `limit` at worst: all of one at
 * its very end, all of the next soon after. On traffic without such a pattern the charges of the last part are a binomial
 * sample: the error is √(previous · f · (1 − f)) on average, at most √limit / 2, and as often too strict as too lax.
 */
export interface SlidingWindowCounterTerms {
  readonly limit: MicroTokens;
  readonly windowMs: Milliseconds;
}

export interface SlidingWindowCounter {
  /** Number of the current window of the grid. */
  index: number;
  current: MicroTokens;
  previous: MicroTokens;
}

export function newSlidingWindowCounter(): SlidingWindowCounter {
  return { index: Number.NEGATIVE_INFINITY, current: 0, previous: 0 };
}

/** What is left at `now` by the estimate, rounded down. A clock set back changes nothing until it comes round again. */
export function levelAt(
  counter: SlidingWindowCounter,
  terms: SlidingWindowCounterTerms,
  now: Milliseconds,
): MicroTokens {
  return Math.max(0, Math.floor(terms.limit - estimate(counter, terms, now)));
}

/** Charges `cost`, which has been seen to be there. */
export function take(
  counter: SlidingWindowCounter,
  terms: SlidingWindowCounterTerms,
  cost: MicroTokens,
  now: Milliseconds,
): void {
  const index = Math.floor(now / terms.windowMs);
  if (index > counter.index) {
    counter.previous = index === counter.index + 1 ? counter.current : 0;
    counter.current = 0;
    counter.index = index;
  }
  counter.current += cost;
}

/** Takes back up to `cost` of what was charged in the current window; what lies before it counts for less and less. */
export function putBack(
  counter: SlidingWindowCounter,
  terms: SlidingWindowCounterTerms,
  cost: MicroTokens,
  now: Milliseconds,
): void {
  if (Math.floor(now / terms.windowMs) <= counter.index) counter.current = Math.max(0, counter.current - cost);
}

/** Whole milliseconds until `cost`, which is at most `limit`, is there if nobody else takes any; 0 if it is. Exact. */
export function waitFor(
  counter: SlidingWindowCounter,
  terms: SlidingWindowCounterTerms,
  cost: MicroTokens,
  now: Milliseconds,
): Milliseconds {
  if (levelAt(counter, terms, now) >= cost) return 0;
  const { limit, windowMs } = terms;
  const room = limit - cost;
  // While this window lasts the previous one fades; when that does not do, this one does after it has become the previous.
  const [index, faded, fixed] =
    counter.current <= room
      ? [counter.index, counter.previous, counter.current]
      : [counter.index + 1, counter.current, 0];
  const at = (index + 1 - (room - fixed) / faded) * windowMs;
  return exactWait(at - now, now, (then) => levelAt(counter, terms, then) >= cost);
}

function estimate(counter: SlidingWindowCounter, terms: SlidingWindowCounterTerms, now: Milliseconds): number {
  if (counter.index === Number.NEGATIVE_INFINITY) return 0;
  const place = (now - counter.index * terms.windowMs) / terms.windowMs;
  if (place >= 2) return 0;
  if (place >= 1) return counter.current * (2 - place);
  return counter.current + counter.previous * Math.min(1, 1 - place);
}
