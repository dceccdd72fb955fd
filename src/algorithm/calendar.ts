import type { EpochMilliseconds, Milliseconds } from '../units.js';

/** Windows that are not all equally long. A week begins on Monday (ISO 8601). */
export const CALENDAR_UNITS = ['day', 'week', 'month'] as const;
export type CalendarUnit = (typeof CALENDAR_UNITS)[number];

/** A window of time: from `start` up to, not including, `end`. */
export interface Span {
  readonly start: Milliseconds;
  readonly end: Milliseconds;
}

/** The window that a moment lies in. */
export type WindowAt = (now: Milliseconds) => Span;

/**
 * Whether this process knows rules for `timeZone`: an IANA name such as `'Europe/Berlin'` or `'UTC'`. Not an offset such as
 * `'+05:30'`, which not every release of Node.js knows: a fleet must agree.
 */
export function isTimeZone(timeZone: string): boolean {
  if (!/^[A-Za-z]/.test(timeZone)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    return false;
  }
}

/** Windows of equal length, one after the other since the Unix epoch. */
export function everyWindow(lengthMs: Milliseconds): WindowAt {
  return (now) => {
    const start = Math.floor(now / lengthMs) * lengthMs;
    return { start, end: start + lengthMs };
  };
}

/**
 * The days, weeks or months of a time zone, from its midnight to its midnight: a day has 23 or 25 hours where clocks
 * change, begins at 01:00 where midnight is skipped, and is not there at all where a zone skipped it. Windows follow each
 * other without gap or overlap, whatever a zone's clocks do.
 *
 * Takes moments of the wall clock. Remembers the last window, so that only the first call of a window computes one.
 */
export function calendarWindow(unit: CalendarUnit, timeZone: string): WindowAt {
  const clock = zoneClock(timeZone);
  let last: Span = { start: 0, end: 0 };
  return (now: EpochMilliseconds) => {
    if (now >= last.start && now < last.end) return last;
    let first = firstDay(unit, clock(now));
    let next = firstDay(unit, first, 1);
    // Clocks set back across midnight show the old date once more, in the window that has begun already.
    for (let end = startOf(next, clock); now >= end; end = startOf(next, clock)) {
      first = next;
      next = firstDay(unit, first, 1);
    }
    last = { start: startOf(first, clock), end: startOf(next, clock) };
    return last;
  };
}

/** A date and time as a zone's clocks show it, as if it were UTC: milliseconds that can be calculated with. */
type Shown = number;

const DAY_MS: Milliseconds = 86_400_000;
/** No zone is or was further from UTC than this. */
const FARTHEST_MS: Milliseconds = 26 * 3_600_000;

/** What the clocks of `timeZone` show at a moment, to the second. */
function zoneClock(timeZone: string): (at: EpochMilliseconds) => Shown {
  const format = new Intl.DateTimeFormat('en-u-ca-iso8601-nu-latn', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  return (at) => {
    const shown: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(at)) shown[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = shown;
    return Date.UTC(year, month - 1, day, hour, minute, second);
  };
}

/** Midnight of the first day of the window that `shown` lies in, or of one that many windows later. */
function firstDay(unit: CalendarUnit, shown: Shown, later = 0): Shown {
  const date = new Date(shown);
  if (unit === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later, 1);
  const day = Math.floor(shown / DAY_MS);
  if (unit === 'day') return (day + later) * DAY_MS;
  const sinceMonday = (date.getUTCDay() + 6) % 7;
  return (day - sinceMonday + later * 7) * DAY_MS;
}

/** The moment at which a zone's clocks come to `shown`, or pass it by. */
function startOf(shown: Shown, clock: (at: EpochMilliseconds) => Shown): EpochMilliseconds {
  let before = shown - FARTHEST_MS;
  let at = shown + FARTHEST_MS;
  while (at - before > 1) {
    const middle = Math.floor((before + at) / 2);
    if (clock(middle) >= shown) at = middle;
    else before = middle;
  }
  return at;
}
