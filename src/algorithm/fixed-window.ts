import { Calendar } from '../calendar.js';
import type { Windows } from '../policy/policy.js';
import { MICROS_PER_MS, type MicroTokens, type Milliseconds } from '../units.js';
import { exactWait } from './wait.js';

/** When the window ends that a moment lies in. */
export type WindowEnd = (now: Milliseconds) => Milliseconds;

/**
 * At most `limit` in each window: one after the other (`now` is then the wall clock), or each from the
 * first charge after the last one ended.
 *
 * Its flaw: two windows touch. `limit` at the end of one and `limit` at the beginning of the next are 2 · `limit` within a
 * moment. Where that matters use a sliding window or a token bucket.
 */
export interface FixedWindowTerms {
  readonly limit: MicroTokens;
  readonly windowEnd: WindowEnd;
}

/** What was used of the window that ends at `end`. */
export interface FixedWindow {
  used: MicroTokens;
  end: Milliseconds;
}

/** How time is cut into windows: parts of a calendar, or equal lengths since the Unix epoch, or each from its first use. */
export function windowEnds(windows: Windows): WindowEnd {
  if (windows.by === 'calendar') {
    const calendar = new Calendar(windows.unit, windows.timeZone);
    return (now) => calendar.windowAt(now).end;
  }
  const lengthMs = windows.length / MICROS_PER_MS;
  if (windows.by === 'first-use') return (now) => now + lengthMs;
  return (now) => (Math.floor(now / lengthMs) + 1) * lengthMs;
}

export function newFixedWindow(): FixedWindow {
  return { used: 0, end: Number.NEGATIVE_INFINITY };
}

/** What is left at `now`. A clock set back does not open a window anew: the later one goes on being charged. */
export function levelAt(window: FixedWindow, terms: FixedWindowTerms, now: Milliseconds): MicroTokens {
  return now >= window.end ? terms.limit : Math.max(0, terms.limit - window.used);
}

/** Charges `cost`, which has been seen to be there. */
export function take(window: FixedWindow, terms: FixedWindowTerms, cost: MicroTokens, now: Milliseconds): void {
  if (now >= window.end) {
    window.used = 0;
    window.end = terms.windowEnd(now);
  }
  window.used += cost;
}

/** Takes back a charge of the window that is still open; one of a window that has ended is worth nothing any more. */
export function putBack(window: FixedWindow, cost: MicroTokens, now: Milliseconds): void {
  if (now < window.end) window.used = Math.max(0, window.used - cost);
}

/** Whole milliseconds until `cost`, which is at most `limit`, is there: exactly until the window ends. 0 if it is. */
export function waitFor(
  window: FixedWindow,
  terms: FixedWindowTerms,
  cost: MicroTokens,
  now: Milliseconds,
): Milliseconds {
  if (levelAt(window, terms, now) >= cost) return 0;
  return exactWait(window.end - now, now, (at) => at >= window.end);
}
