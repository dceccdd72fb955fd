import { Calendar, type CalendarWindow } from '../calendar.js';
import type { WindowCall } from '../ceiling/ceiling-store.js';
import type { Windows } from '../policy/policy.js';
import { MICROS_PER_MS, type Microseconds } from '../units.js';

export type CalendarWindows = Windows & { readonly by: 'calendar' };

/** The windows of a calendar as calls speak of them. */
export class CallCalendar {
  readonly #calendar: Calendar;
  readonly #length: Microseconds;
  #window: CalendarWindow | undefined;
  #call: WindowCall | undefined;

  constructor(windows: CalendarWindows) {
    this.#calendar = new Calendar(windows.unit, windows.timeZone);
    this.#length = windows.length;
  }

  at(storeNow: Microseconds): WindowCall {
    const window = this.#calendar.windowAt(Math.floor(storeNow / MICROS_PER_MS));
    if (!this.#call || window !== this.#window) {
      const { start, end } = window;
      this.#window = window;
      this.#call = Object.freeze({
        rule: 'calendar',
        length: this.#length,
        start: start * MICROS_PER_MS,
        end: end * MICROS_PER_MS,
      });
    }
    return this.#call;
  }
}
