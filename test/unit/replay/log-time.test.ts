import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { logTime } from '../../../src/replay/log-time.js';

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const seconds = fc.integer({ min: 100_000_000, max: 4_000_000_000 });
const zones = fc.integer({ min: -14 * 60, max: 14 * 60 });

const two = (n: number): string => String(n).padStart(2, '0');

/** The parts of a moment as a clock shows them that is `zone` minutes ahead, and the offset it says. */
function shown(second: number, zone: number) {
  const there = new Date((second + zone * 60) * 1_000);
  const minutes = Math.abs(zone);
  return { there, sign: zone < 0 ? '-' : '+', hh: two(Math.floor(minutes / 60)), mm: two(minutes % 60) };
}

describe('the time of a line', () => {
  it('is the same moment in whatever zone an access log tells it', () => {
    fc.assert(
      fc.property(seconds, zones, (second, zone) => {
        const { there, sign, hh, mm } = shown(second, zone);
        const day = `${two(there.getUTCDate())}/${MONTHS[there.getUTCMonth()]}/${there.getUTCFullYear()}`;
        const clock = there.toISOString().slice(11, 19);
        expect(logTime(`${day}:${clock} ${sign}${hh}${mm}`)).toBe(second * 1e6);
      }),
    );
  });

  it('is the same moment in whatever zone an ISO time tells it, to the microsecond', () => {
    fc.assert(
      fc.property(seconds, zones, fc.integer({ min: 0, max: 999_999 }), (second, zone, micros) => {
        const { there, sign, hh, mm } = shown(second, zone);
        const text = `${there.toISOString().slice(0, 19)}.${String(micros).padStart(6, '0')}`;
        expect(logTime(`${text}${sign}${hh}:${mm}`)).toBe(second * 1e6 + micros);
        if (zone === 0) expect(logTime(text)).toBe(logTime(`${text}Z`));
      }),
    );
  });

  it('may be a number of seconds, milliseconds, microseconds or nanoseconds', () => {
    for (const value of [
      1_490_620_089,
      1_490_620_089_000,
      1_490_620_089_000_000,
      1_490_620_089_000_000_000,
      '1490620089',
    ])
      expect(logTime(value)).toBe(1_490_620_089_000_000);
    expect(logTime(1_490_620_089.25)).toBe(1_490_620_089_250_000);
  });

  it.each([
    '31/Feb/2015:10:05:03 +0000',
    '00/Jan/2015:10:05:03 +0000',
    '17/Mai/2015:10:05:03 +0000',
    '17/May/2015:24:05:03 +0000',
    '2015-13-01T00:00:00Z',
    '2015-02-29T00:00:00Z',
    '2015-05-17',
    'yesterday',
    '',
    -1,
    Number.NaN,
    null,
    true,
    {},
  ])('is not to be had of %j', (value) => {
    expect(logTime(value)).toBeUndefined();
  });

  it('takes the second that is put in now and then for the one after it', () => {
    expect(logTime('31/Dec/2016:23:59:60 +0000')).toBe(logTime('2017-01-01T00:00:00Z'));
  });
});
