import type { EpochMilliseconds, Milliseconds } from './units.js';

/** Part of the calendar that a fixed window may be: a week begins on Monday. */
export type CalendarUnit = 'day' | 'week' | 'month';

/** From `start` up to, and without, `end`. */
export interface CalendarWindow {
  readonly start: EpochMilliseconds;
  readonly end: EpochMilliseconds;
}

const DAY_MS: Milliseconds = 86_400_000;
/** 1 January 1970 was a Thursday. */
const MONDAY_OF_1970 = 4;

/**
 * The days, weeks or months of a time zone, as the time zone data of this process has them: a day has 23 or 25 hours
 * where clocks are put forward or back in it, and begins at 1 o'clock where there is no midnight. Windows follow on
 * each other without gap or overlap. The one that was asked for last is kept, so that asking again within it costs two
 * comparisons and no allocation.
 */
export class Calendar {
  readonly #unit: CalendarUnit;
  readonly #format: Intl.DateTimeFormat;
  #window: CalendarWindow = { start: 0, end: 0 };

  /** @throws RangeError where there is no such time zone */
  constructor(unit: CalendarUnit, timeZone: string) {
    this.#unit = unit;
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  }

  /** The window that `at` lies in; the same object for as long as it does. */
  windowAt(at: EpochMilliseconds): CalendarWindow {
    if (at >= this.#window.start && at < this.#window.end) return this.#window;
    const local = this.#localTime(at);
    let day = this.#firstDay(Math.floor(local / DAY_MS) * DAY_MS);
    let end = this.#startOf(this.#next(day));
    // Where clocks are put back over midnight, one date comes twice: what is past its end is the next window's.
    while (at >= end) {
      day = this.#next(day);
      end = this.#startOf(this.#next(day));
    }
    this.#window = { start: this.#startOf(day), end };
    return this.#window;
  }

  /** The first day of the window that the local `day` lies in; days are told as if the time zone were UTC. */
  #firstDay(day: EpochMilliseconds): EpochMilliseconds {
    if (this.#unit === 'day') return day;
    if (this.#unit === 'week') return day - ((((day / DAY_MS - MONDAY_OF_1970) % 7) + 7) % 7) * DAY_MS;
    const date = new Date(day);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
  }

  #next(firstDay: EpochMilliseconds): EpochMilliseconds {
    if (this.#unit === 'day') return firstDay + DAY_MS;
    if (this.#unit === 'week') return firstDay + 7 * DAY_MS;
    const date = new Date(firstDay);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
  }

  /**
   * The moment at which the local `day` begins: its midnight by the offset of the day before or of the day after,
   * whichever is the first at which the date has just become this one or a later one.
   */
  #startOf(day: EpochMilliseconds): EpochMilliseconds {
    const before = day - this.#offset(day - DAY_MS);
    const after = day - this.#offset(day + DAY_MS);
    const first = Math.min(before, after);
    return this.#begins(day, first) ? first : Math.max(before, after);
  }

  #begins(day: EpochMilliseconds, at: EpochMilliseconds): boolean {
    return this.#localTime(at) >= day && this.#localTime(at - 1_000) < day;
  }

  /** How far the clocks of the time zone are ahead of UTC at `at`. */
  #offset(at: EpochMilliseconds): Milliseconds {
    return this.#localTime(at) - Math.floor(at / 1_000) * 1_000;
  }

  /** What the clocks show at `at`, to the second, told as if the time zone were UTC. */
  #localTime(at: EpochMilliseconds): EpochMilliseconds {
    const shown = new Map<string, number>();
    for (const { type, value } of this.#format.formatToParts(at)) shown.set(type, Number(value));
    const read = (type: string): number => shown.get(type) ?? 0;
    return Date.UTC(read('year'), read('month') - 1, read('day'), read('hour'), read('minute'), read('second'));
  }
}
