import { describe, expect, it } from 'vitest';
import type { RateDocument } from '../../../src/policy/policy.js';
import { type BucketUnderTest, bucket, TIERS } from './bucket-under-test.js';

const DAY = 86_400_000;
/** A full bucket of the ceiling is full as of the next microsecond, so that what is spent then is paid for from there. */
const TICK = 0.002;

/** Takes one token at a time until there is none; answers how many. */
function drain(under: BucketUnderTest, atMs: number): number {
  let taken = 0;
  while (under.take(1, atMs)) taken += 1;
  return taken;
}

/** Single attempts every `everyMs` in (0, untilMs], as many as `tries` each; answers how many passed. */
function poll(under: BucketUnderTest, everyMs: number, untilMs: number, tries = 1): number {
  let passed = 0;
  for (let i = 1; i * everyMs <= untilMs + 1e-9; i++) {
    for (let k = 0; k < tries; k++) if (under.take(1, i * everyMs)) passed += 1;
  }
  return passed;
}

function drained(tier: (typeof TIERS)[number], document: RateDocument): BucketUnderTest {
  const under = bucket(tier, document);
  if (!under.take(document.burst, 0)) throw new Error('Expected a full bucket.');
  return under;
}

describe.each(TIERS)('a token bucket of the %s tier (groups A and B of the cases)', (tier) => {
  it.each([
    { rate: 10, per: '13s', burst: 1 },
    { rate: 1, per: '3s', burst: 1 },
    { rate: 7, per: '11s', burst: 1 },
    { rate: 3, per: '7s', burst: 1 },
    { rate: 1, per: '1d', burst: 1 },
    { rate: 1_000_000, per: '7s', burst: 1 },
  ] as const)(
    'allows the first call and denies the second at $rate per $per, however long it was idle (C02)',
    (document) => {
      for (const idle of [0, 1, 50 * 365 * DAY]) {
        const under = bucket(tier, document);
        expect([under.take(1, idle), under.take(1, idle)]).toEqual([true, false]);
      }
    },
  );

  it.each([80_000, 8_001, 33_333])('admits %i a second when asked each microsecond (C04)', (rate) => {
    const under = drained(tier, { rate, burst: 10 });
    expect(Math.abs(poll(under, 0.001, 20) - rate / 50)).toBeLessThanOrEqual(1);
  });

  it('admits a thousand of 1,500 at once, and one of ten where the burst is one (C07)', () => {
    expect(poll(bucket(tier, { rate: 1_000, per: '1m', burst: 1_000 }), 0.006, 9)).toBe(1_000);
    const single = bucket(tier, { rate: 3, burst: 1 });
    expect(Array.from({ length: 10 }, () => single.take(1, 0)).filter(Boolean)).toHaveLength(1);
  });

  it.each([2_000, 1_500, 8_000])('gains %i tokens a second, which is more than one a millisecond (C08)', (rate) => {
    const under = drained(tier, { rate, burst: rate, per: 1_000 });
    expect(Math.abs(poll(under, 1, 100, 20) - rate / 10)).toBeLessThanOrEqual(1);
  });

  it('gains 98,000 a millisecond at 980 million per ten seconds, read each millisecond (C10)', () => {
    const under = drained(tier, { rate: 980_000_000, per: '10s', burst: 980_000_000 });
    for (let ms = 1; ms <= 1_000; ms++) expect(under.take(98_000_000.5, ms)).toBe(false);
    expect(under.take(98_000_000, 1_000 + TICK)).toBe(true);
    expect(under.take(300, 1_000 + TICK)).toBe(false);
  });

  it.each([
    { rate: 100_000, per: '1d', burst: 100_000 },
    { rate: 50_000, per: '1d', burst: 50_000 },
    { rate: 1_000_000_000, per: '30d', burst: 1_000_000_000 },
  ] as const)(
    'is full again after its period, and a thousandth of it after a thousandth: $rate per $per (C13)',
    (document) => {
      const per = document.per === '1d' ? DAY : 30 * DAY;
      expect(drained(tier, document).take(document.rate / 1_000, per / 1_000 + TICK)).toBe(true);
      const under = drained(tier, document);
      expect(under.take(document.burst, per + TICK)).toBe(true);
      expect(under.take(1, per + TICK)).toBe(false);
    },
  );

  it.each([
    [1, 100],
    [0.1, 100],
    [3, 99],
    [7, 99],
    [13, 76],
  ])('admits what it earns when polled every %f ms: %i in a second of 100/s (C14)', (everyMs, passed) => {
    expect(Math.abs(poll(drained(tier, { rate: 100, burst: 10 }), everyMs, 1_000) - passed)).toBeLessThanOrEqual(1);
  });

  it('loses no fraction to arrivals between whole tokens (C16)', () => {
    const under = bucket(tier, { rate: 1, burst: 4 });
    expect([0, 500, 1_000, 1_500, 2_000].map((ms) => under.take(1, ms))).toEqual([true, true, true, true, true]);
  });

  it('keeps the remainder at each refill: 190 of two tries every 19 ms at 100/s (C17)', () => {
    const under = drained(tier, { rate: 1, per: 10, burst: 100 });
    expect(Math.abs(poll(under, 19, 1_900, 2) - 190)).toBeLessThanOrEqual(1);
  });

  it('throws no credit away on a denial: 100 per 15 min, asked each second (C19)', () => {
    const under = drained(tier, { rate: 100, per: '15m', burst: 1 });
    expect(Math.abs(poll(under, 1_000.01, 900_000) - 100)).toBeLessThanOrEqual(1);
  });

  it('does not pay for time spent full: after an idle hour one burst passes, not two (C20)', () => {
    const under = bucket(tier, { rate: 10, per: '10s', burst: 10 });
    expect(under.take(10, 3_600_000)).toBe(true);
    expect(under.take(10, 3_600_000)).toBe(false);
    expect(Math.round(under.retryAfter(10, 3_600_000))).toBe(10_000);
    expect(under.take(1, 3_600_000)).toBe(false);
  });

  it('counts from when it stopped being full, not from an earlier tick (C22)', () => {
    const under = bucket(tier, { rate: 1, per: '1m', burst: 5 });
    expect(under.take(5, 59_000)).toBe(true);
    expect(under.take(1, 60_000)).toBe(false);
    expect(Math.round(under.retryAfter(1, 60_000))).toBe(59_000);
    expect(under.take(1, 119_000 + TICK)).toBe(true);
  });

  it.each([5_000, DAY, 3_650 * DAY])('holds no more than its burst after %i ms of idleness (C23)', (idle) => {
    expect(drain(bucket(tier, { rate: 3, per: 500, burst: 3 }), idle)).toBe(3);
  });

  it.each([
    [15, 30],
    [1, 16],
  ])('admits burst + rate·w in a window and no more: 15 a minute with a burst of %i admits %i (C25)', (burst, most) => {
    const under = bucket(tier, { rate: 15, per: '1m', burst });
    const admitted = drain(under, 0) + poll(under, 10, 60_000);
    expect(admitted).toBeLessThanOrEqual(most);
    expect(admitted).toBeGreaterThanOrEqual(most - 1);
  });

  it('is not reborn full while it is in use: 3/s asked every 100 ms for 10 s admits 33 (C26)', () => {
    const admitted = poll(bucket(tier, { rate: 3, burst: 3 }), 100, 10_000);
    expect(admitted).toBeLessThanOrEqual(33);
    expect(admitted).toBeGreaterThanOrEqual(32);
  });

  it('a denial of a large cost takes nothing (C46)', () => {
    const under = bucket(tier, { rate: 1, per: '10s', burst: 10 });
    expect([8, 5, 2].map((cost) => under.take(cost, 0))).toEqual([true, false, true]);
  });
});

describe.each(TIERS)('a token bucket of the %s tier whose clock goes back (group C)', (tier) => {
  it.each([-500, -600_000])('names no wait longer than the missing tokens take, %i ms back (C28)', (step) => {
    const start = 3_600_000;
    const under = bucket(tier, { rate: 10, per: '1m', burst: 10 });
    expect(under.take(10, start)).toBe(true);
    // The local tier's limiter holds its clock where it was; the store's re-bases what is further back than maxSkew.
    const now = tier === 'local' ? start : start + step;
    expect(under.retryAfter(1, now)).toBeLessThanOrEqual(6_001);
  });

  it('mints nothing from times that alternate (C29)', () => {
    const under = bucket(tier, { rate: 1, burst: 1 });
    const steps = tier === 'local' ? 1_000 : 90; // The store takes more than 100 ms for a step, and starts over from it.
    const allowed = Array.from({ length: 20 }, (_, i) => under.take(1, i % 2 === 0 ? 100_000 : 100_000 - steps));
    expect(allowed.filter(Boolean)).toHaveLength(1);
  });

  it('is not locked by a moment from the future: one refill after the clock was set right it allows (C31)', () => {
    const start = 6 * 3_600_000;
    const under = bucket(tier, { rate: 1, per: '1m', burst: 1 });
    expect(under.take(1, start)).toBe(true);
    if (tier === 'ceiling') {
      expect(under.take(1, 61_000)).toBe(false);
      expect(under.take(1, 61_000 + 60_001)).toBe(true);
    } else {
      expect(under.take(1, start + 61_000)).toBe(true);
    }
  });
});
