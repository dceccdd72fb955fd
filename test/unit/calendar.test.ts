import { describe, expect, it } from 'vitest';
import { Calendar, type CalendarUnit } from '../../src/calendar.js';

const HOUR = 3_600_000;
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  // Clocks went forward, or back, at midnight; a date was left out; half an hour of daylight saving.
  'America/Sao_Paulo',
  'Asia/Beirut',
  'America/Havana',
  'Pacific/Apia',
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
];

function window(unit: CalendarUnit, zone: string, at: string): [string, string] {
  const { start, end } = new Calendar(unit, zone).windowAt(Date.parse(at));
  return [new Date(start).toISOString(), new Date(end).toISOString()];
}

describe('the calendar of a time zone', () => {
  it.each<[string, CalendarUnit, string, string, string, string]>([
    ['a day', 'day', 'UTC', '2026-11-30T22:00:00Z', '2026-11-30T00:00:00.000Z', '2026-12-01T00:00:00.000Z'],
    [
      'its first millisecond',
      'day',
      'UTC',
      '2026-12-01T00:00:00Z',
      '2026-12-01T00:00:00.000Z',
      '2026-12-02T00:00:00.000Z',
    ],
    ['its last', 'day', 'UTC', '2026-11-30T23:59:59.999Z', '2026-11-30T00:00:00.000Z', '2026-12-01T00:00:00.000Z'],
    [
      'of 23 hours',
      'day',
      'Europe/Berlin',
      '2026-03-29T12:00:00Z',
      '2026-03-28T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
    ],
    [
      'of 25 hours',
      'day',
      'Europe/Berlin',
      '2026-10-25T12:00:00Z',
      '2026-10-24T22:00:00.000Z',
      '2026-10-25T23:00:00.000Z',
    ],
    // 4 November 2018 began at 1 o'clock.
    [
      'without midnight',
      'day',
      'America/Sao_Paulo',
      '2018-11-04T12:00:00Z',
      '2018-11-04T03:00:00.000Z',
      '2018-11-05T02:00:00.000Z',
    ],
    // At midnight between 17 and 18 February 2018 clocks went back to 23 o'clock.
    [
      'with two midnights',
      'day',
      'America/Sao_Paulo',
      '2018-02-18T12:00:00Z',
      '2018-02-18T03:00:00.000Z',
      '2018-02-19T03:00:00.000Z',
    ],
    [
      'and the hour that came twice',
      'day',
      'America/Sao_Paulo',
      '2018-02-18T02:30:00Z',
      '2018-02-17T02:00:00.000Z',
      '2018-02-18T03:00:00.000Z',
    ],
    // 30 December 2011 was left out.
    [
      'after one left out',
      'day',
      'Pacific/Apia',
      '2011-12-30T12:00:00Z',
      '2011-12-30T10:00:00.000Z',
      '2011-12-31T10:00:00.000Z',
    ],
    [
      'a week from Monday',
      'week',
      'Europe/Berlin',
      '2026-10-25T23:30:00Z',
      '2026-10-25T23:00:00.000Z',
      '2026-11-01T23:00:00.000Z',
    ],
    ['a week on Sunday', 'week', 'UTC', '2026-11-29T12:00:00Z', '2026-11-23T00:00:00.000Z', '2026-11-30T00:00:00.000Z'],
    [
      'a month',
      'month',
      'America/New_York',
      '2026-03-15T00:00:00Z',
      '2026-03-01T05:00:00.000Z',
      '2026-04-01T04:00:00.000Z',
    ],
    ['December', 'month', 'UTC', '2026-12-31T23:59:59Z', '2026-12-01T00:00:00.000Z', '2027-01-01T00:00:00.000Z'],
    ['a leap February', 'month', 'UTC', '2028-02-29T12:00:00Z', '2028-02-01T00:00:00.000Z', '2028-03-01T00:00:00.000Z'],
    ['a day before 1970', 'day', 'UTC', '1969-12-31T12:00:00Z', '1969-12-31T00:00:00.000Z', '1970-01-01T00:00:00.000Z'],
    ['before 1970', 'week', 'UTC', '1969-12-31T12:00:00Z', '1969-12-29T00:00:00.000Z', '1970-01-05T00:00:00.000Z'],
  ])('has %s', (_, unit, zone, at, start, end) => {
    expect(window(unit, zone, at)).toEqual([start, end]);
  });

  it.each(ZONES)('follows on itself without gap or overlap, whichever moment is asked for first (%s)', (zone) => {
    const calendar = new Calendar('day', zone);
    let at = Date.parse('2010-12-31T12:00:00Z');
    let last = calendar.windowAt(at);
    let days = 1;
    for (; at < Date.parse('2012-01-03T00:00:00Z'); at += 2.7 * HOUR) {
      const next = calendar.windowAt(at);
      expect(at >= next.start && at < next.end).toBe(true);
      // Asked for afresh, it is the same.
      if (next !== last) {
        expect(next.start).toBe(last.end);
        expect(new Calendar('day', zone).windowAt(next.end - 1)).toEqual(next);
        expect(new Calendar('day', zone).windowAt(next.start)).toEqual(next);
        days += 1;
      }
      last = next;
    }
    expect(days).toBeGreaterThan(365);
  });

  it('answers with the same object within a window', () => {
    const calendar = new Calendar('month', 'Europe/Berlin');
    const first = calendar.windowAt(Date.parse('2026-11-02T00:00:00Z'));
    expect(calendar.windowAt(Date.parse('2026-11-30T00:00:00Z'))).toBe(first);
    expect(calendar.windowAt(Date.parse('2026-12-02T00:00:00Z'))).not.toBe(first);
  });

  it('knows its time zones', () => {
    expect(() => new Calendar('day', 'Mars/Phobos')).toThrow(RangeError);
  });
});
