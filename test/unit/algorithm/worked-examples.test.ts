import { describe, expect, it } from 'vitest';
import * as leakyBucket from '../../../src/algorithm/leaky-bucket.js';
import { MICRO } from '../../../src/units.js';
import {
  counter,
  daily,
  epochWindows,
  fixed,
  fromFirstUse,
  leaky,
  log,
  type UnderTest,
} from './algorithms-under-test.js';
import { bucket } from './bucket-under-test.js';

const MINUTE = 60_000;
const HOUR = 3_600_000;

/** How many of `count` requests pass that come every `everyMs` from `from` on. */
function passed(algorithm: UnderTest, count: number, from: number, everyMs = 0): number {
  let passed = 0;
  for (let i = 0; i < count; i++) if (algorithm.take(MICRO, from + i * everyMs)) passed += 1;
  return passed;
}

describe('ten at once, then two a second', () => {
  it('is a token bucket with the burst 10 and the rate 2', () => {
    const limit = bucket('local', { rate: 2, burst: 10 });
    const passed = (at: number): number => [...Array(20)].filter(() => limit.take(1, at)).length;
    expect([0, 499, 500, 999, 1_000, 2_000].map(passed)).toEqual([10, 0, 1, 0, 1, 2]);
  });

  it('is not a leaky bucket of the rate 2, which lets one leave every half second and never a burst', () => {
    const limit = leaky((2 * MICRO) / 1_000);
    expect([0, 499, 500, 999, 1_000, 60_000, 60_000].map((at) => passed(limit, 20, at))).toEqual([1, 0, 1, 0, 1, 1, 0]);
  });
});

describe('sixty a minute, all that come at the end of one minute and at the beginning of the next', () => {
  const around = (limit: UnderTest): number[] => [passed(limit, 100, MINUTE - 1), passed(limit, 100, MINUTE)];

  it('are 120 within a millisecond under a fixed window: its flaw', () => {
    expect(around(fixed(60 * MICRO, epochWindows(MINUTE)))).toEqual([60, 60]);
  });

  it('are 60 under a fixed window from first use, whose boundary is where it is first used, which only moves the flaw', () => {
    const limit = fixed(60 * MICRO, fromFirstUse(MINUTE));
    expect(around(limit)).toEqual([60, 0]);
    const late = fixed(60 * MICRO, fromFirstUse(MINUTE));
    expect([passed(late, 1, 0), passed(late, 100, MINUTE - 1), passed(late, 100, MINUTE)]).toEqual([1, 59, 60]);
  });

  it('are 60 under a sliding window log', () => {
    expect(around(log(60 * MICRO, MINUTE))).toEqual([60, 0]);
  });

  it('are 60 under a sliding window counter, which lets more pass as the first minute fades', () => {
    const limit = counter(60 * MICRO, MINUTE);
    expect(around(limit)).toEqual([60, 0]);
    expect(passed(limit, 100, MINUTE * 1.25)).toBe(15);
    expect(passed(limit, 100, MINUTE * 1.5)).toBe(15);
  });
});

describe('400 requests in one instant against 40 a second', () => {
  it.each([
    ['a fixed window', fixed(40 * MICRO, epochWindows(1_000)), 40],
    ['a sliding window log', log(40 * MICRO, 1_000), 40],
    ['a sliding window counter', counter(40 * MICRO, 1_000), 40],
    ['a leaky bucket', leaky((40 * MICRO) / 1_000), 1],
  ])('are %s’s limit and no more', (_, limit, admitted) => {
    expect(passed(limit, 400, 5_000)).toBe(admitted);
  });
});

describe('a leaky bucket', () => {
  const terms = { microsPerMs: (2 * MICRO) / 1_000, queue: 5 * MICRO };

  it('keeps the next one back by what the last one cost', () => {
    const state = leakyBucket.newLeakyBucket();
    leakyBucket.leave(state, terms, 3 * MICRO, 0);
    expect(leakyBucket.waitFor(state, terms, 0, 0)).toBe(1_500);
    expect(leakyBucket.waitFor(state, terms, 2 * MICRO, 500)).toBe(2_000);
    expect(leakyBucket.mayLeave(state, 1_499)).toBe(false);
    expect(leakyBucket.mayLeave(state, 1_500)).toBe(true);
  });

  it('does not slow down where those who wait are woken late', () => {
    const state = leakyBucket.newLeakyBucket();
    for (let i = 0; i < 100; i++) leakyBucket.leave(state, terms, MICRO, i * 500 + 9, 10);
    expect(leakyBucket.waitFor(state, terms, 0, 99 * 500)).toBeLessThanOrEqual(510);
  });
});

describe('a daily quota', () => {
  it('is there again at midnight of its zone, also on a day of 25 hours', () => {
    const limit = daily(10 * MICRO, 'Europe/Berlin');
    const noon = Date.parse('2026-10-25T11:00Z');
    expect(passed(limit, 20, noon)).toBe(10);
    expect(limit.waitFor(MICRO, noon)).toBe(12 * HOUR);
    expect(passed(limit, 20, Date.parse('2026-10-25T22:59:59.999Z'))).toBe(0);
    expect(passed(limit, 20, Date.parse('2026-10-25T23:00Z'))).toBe(10);
  });

  it('is not given twice where the clock is set back across midnight', () => {
    const limit = daily(10 * MICRO, 'UTC');
    const midnight = Date.parse('2026-11-30T00:00Z');
    expect(passed(limit, 10, midnight - 1)).toBe(10);
    expect(passed(limit, 4, midnight)).toBe(4);
    expect(passed(limit, 20, midnight - 1_000)).toBe(6);
    expect(passed(limit, 20, midnight + 1_000)).toBe(0);
  });
});

describe('a refund', () => {
  it('of a window that has ended is worth nothing in the next one', () => {
    const limit = fixed(10 * MICRO, epochWindows(MINUTE));
    limit.take(10 * MICRO, 0);
    limit.take(10 * MICRO, MINUTE);
    limit.putBack(5 * MICRO, MINUTE * 2);
    expect(limit.level(MINUTE * 2 - 1)).toBe(0);
  });

  it('takes back the oldest charges of a log, so that no window has more than the limit whichever it was for', () => {
    const limit = log(10 * MICRO, 1_000);
    limit.take(5 * MICRO, 0);
    limit.take(5 * MICRO, 900);
    limit.putBack(5 * MICRO, 950);
    expect(limit.take(5 * MICRO, 950)).toBe(true);
    // Ten are in the window that ends here, if what came at 0 was what did not come about.
    expect(limit.level(1_000)).toBe(0);
    expect(limit.level(1_900)).toBe(5 * MICRO);
  });
});
