import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RetrySlots } from '../../../src/http/index.js';

describe('slots to come back in', () => {
  it('are one after the other, as far apart as the limit earns what they cost', () => {
    const slots = new RetrySlots(60_000);
    expect([1, 2, 3].map(() => slots.next('k', 400, 100, 1_000))).toEqual([400, 500, 600]);
    expect(slots.next('another', 400, 100, 1_000)).toBe(400);
    // Another 50 ms have passed; one that costs twice as much comes twice as long after the last.
    expect(slots.next('k', 350, 200, 1_050)).toBe(750);
    expect(slots.next('k', 400, 100, 9_000)).toBe(400);
  });

  it('are never earlier than the request could pass, and later by a bound at most', () => {
    const request = fc.record({
      retryAfterMs: fc.integer({ min: 1, max: 5_000 }),
      gapMs: fc.double({ min: 0.01, max: 3_000, noNaN: true }),
      passes: fc.integer({ min: 0, max: 2_000 }),
      key: fc.constantFrom('a', 'b'),
    });
    fc.assert(
      fc.property(fc.array(request, { maxLength: 100 }), fc.integer({ min: 1, max: 10_000 }), (requests, mostMs) => {
        const slots = new RetrySlots(mostMs);
        let now = 0;
        for (const { key, retryAfterMs, gapMs, passes } of requests) {
          now += passes;
          const ms = slots.next(key, retryAfterMs, gapMs, now);
          expect(ms).toBeGreaterThanOrEqual(retryAfterMs - 1e-6);
          expect(ms).toBeLessThanOrEqual(retryAfterMs + mostMs + 1e-6);
        }
      }),
    );
  });

  it('of ever new keys are kept for no more of them than it takes, and then no longer given', () => {
    const slots = new RetrySlots(60_000);
    for (let i = 0; i < 100_000; i++) slots.next(`key ${i}`, 1_000, 10, 0);
    expect([1, 2].map(() => slots.next('one more', 1_000, 10, 0))).toEqual([1_000, 1_000]);
    expect([1, 2].map(() => slots.next('key 7', 1_000, 10, 0))).toEqual([1_010, 1_020]);
    expect([1, 2].map(() => slots.next('one more', 1_000, 10, 2_000))).toEqual([1_000, 1_010]);
  });
});
