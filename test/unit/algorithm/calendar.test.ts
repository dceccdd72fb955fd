import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CALENDAR_UNITS, calendarWindow, everyWindow, isTimeZone } from '../../../src/algorithm/calendar.js';

const HOUR = 3_600_000;
const iso = (at: number): string => new Date(at).toISOString().replace(':00.000Z', 'Z');
const spanOf = (unit: 'day' | 'week' | 'month', zone: string, at: string): string => {
  const { start, end } = calendarWindow(unit, zone)(Date.parse(at));
  return `${iso(start)} ${iso(end)} ${(end - start) / HOUR}`;
};

describe('the window of a calendar', () => {
  it.each([
    ['day', 'UTC', '2026-11-30T22:00Z', '2026-11-30T00:00Z 2026-12-01T00:00Z 24'],
    ['day', 'UTC', '2026-11-30T00:00Z', '2026-11-30T00:00Z 2026-12-01T00:00Z 24'],
    ['day', 'Europe/Berlin', '2026-11-30T23:00Z', '2026-11-30T23:00Z 2026-12-01T23:00Z 24'],
    ['day', 'Asia/Kolkata', '2026-11-30T18:29Z', '2026-11-29T18:30Z 2026-11-30T18:30Z 24'],
    // Clocks set forward: 23 hours. Set back: 25.
    ['day', 'Europe/Berlin', '2026-03-29T12:00Z', '2026-03-28T23:00Z 2026-03-29T22:00Z 23'],
    ['day', 'Europe/Berlin', '2026-10-25T12:00Z', '2026-10-24T22:00Z 2026-10-25T23:00Z 25'],
    ['day', 'America/New_York', '2026-11-01T06:30Z', '2026-11-01T04:00Z 2026-11-02T05:00Z 25'],
    // Midnight itself is skipped: the day begins at 01:00.
    ['day', 'America/Sao_Paulo', '2018-11-04T12:00Z', '2018-11-04T03:00Z 2018-11-05T02:00Z 23'],
    ['day', 'Africa/Cairo', '2026-04-24T12:00Z', '2026-04-23T22:00Z 2026-04-24T21:00Z 23'],
    // 23:00 to 24:00 comes twice.
    ['day', 'America/Sao_Paulo', '2018-02-17T12:00Z', '2018-02-17T02:00Z 2018-02-18T03:00Z 25'],
    // Half an hour.
    ['day', 'Australia/Lord_Howe', '2026-04-05T03:00Z', '2026-04-04T13:00Z 2026-04-05T13:30Z 24.5'],
    // A day that never was: after the 29th came the 31st.
    ['day', 'Pacific/Apia', '2011-12-30T09:59Z', '2011-12-29T10:00Z 2011-12-30T10:00Z 24'],
    ['day', 'Pacific/Apia', '2011-12-30T10:00Z', '2011-12-30T10:00Z 2011-12-31T10:00Z 24'],
    ['week', 'UTC', '2026-11-29T23:59Z', '2026-11-23T00:00Z 2026-11-30T00:00Z 168'],
    ['week', 'UTC', '2026-11-30T00:00Z', '2026-11-30T00:00Z 2026-12-07T00:00Z 168'],
    ['week', 'Europe/Berlin', '2026-10-25T12:00Z', '2026-10-18T22:00Z 2026-10-25T23:00Z 169'],
    ['month', 'UTC', '2026-12-31T23:59Z', '2026-12-01T00:00Z 2027-01-01T00:00Z 744'],
    ['month', 'UTC', '2028-02-29T00:00Z', '2028-02-01T00:00Z 2028-03-01T00:00Z 696'],
    ['month', 'Europe/Berlin', '2026-03-01T00:00Z', '2026-02-28T23:00Z 2026-03-31T22:00Z 743'],
    ['month', 'Pacific/Auckland', '2026-11-30T11:00Z', '2026-11-30T11:00Z 2026-12-31T11:00Z 744'],
  ] as const)('%s in %s at %s is from … to … hours', (unit, zone, at, span) => {
    expect(spanOf(unit, zone, at)).toBe(span);
  });

  it('is the same wherever in it one asks, and the next begins where it ends, for clocks that do odd things', () => {
    const zones = ['Europe/Berlin', 'America/St_Johns', 'Pacific/Apia', 'Africa/Casablanca', 'Antarctica/Troll', 'UTC'];
    const moments = fc.integer({ min: Date.UTC(1990), max: Date.UTC(2040) });
    fc.assert(
      fc.property(
        fc.constantFrom(...CALENDAR_UNITS),
        fc.constantFrom(...zones),
        moments,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (unit, zone, at, part) => {
          const windowAt = calendarWindow(unit, zone);
          const span = windowAt(at);
          expect(span.start).toBeLessThanOrEqual(at);
          expect(span.end).toBeGreaterThan(at);
          const elsewhere = calendarWindow(unit, zone);
          expect(elsewhere(span.start + Math.floor(part * (span.end - span.start - 1)))).toEqual(span);
          expect(elsewhere(span.end).start).toBe(span.end);
          expect(elsewhere(span.start - 1).end).toBe(span.start);
          expect(windowAt(span.end - 1)).toBe(span);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('does not begin twice where clocks are set back across midnight, as St. John’s once did at 00:01', () => {
    const windowAt = calendarWindow('day', 'America/St_Johns');
    const spans = new Set<number>();
    // 00:01 of the 7th became 23:01 of the 6th, at 02:31 UTC.
    for (let at = Date.parse('2010-11-07T02:00Z'); at < Date.parse('2010-11-07T04:00Z'); at += 10_000) {
      spans.add(windowAt(at).start);
    }
    expect(spans.size).toBe(2);
  });
});

it('equal windows are counted from the Unix epoch', () => {
  const minute = everyWindow(60_000);
  expect(minute(0)).toEqual({ start: 0, end: 60_000 });
  expect(minute(Date.parse('2026-11-30T22:00:59.999Z')).start).toBe(Date.parse('2026-11-30T22:00Z'));
  expect(minute(-1)).toEqual({ start: -60_000, end: 0 });
});

it('time zones are known by their names', () => {
  for (const zone of ['UTC', 'Europe/Berlin', 'Etc/GMT-5']) expect(isTimeZone(zone), zone).toBe(true);
  for (const zone of ['', '+05:30', 'Mars/Olympus', 'CEST+1']) expect(isTimeZone(zone), zone).toBe(false);
});
