import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fullBucket, levelAt, take, waitFor } from '../../src/algorithm/token-bucket.js';
import type { LocalTerms } from '../../src/policy/policy.js';

/** Any terms, and such as people write: whole tokens a second. */
const terms: fc.Arbitrary<LocalTerms> = fc.oneof(
  fc.record({
    ratePerMs: fc.double({ min: 1e-6, max: 1e3, noNaN: true }),
    burst: fc.integer({ min: 1, max: 1_000_000 }),
  }),
  fc.record({
    ratePerMs: fc.integer({ min: 1, max: 3_000 }).map((perSecond) => perSecond / 1_000),
    burst: fc.integer({ min: 1, max: 50 }),
  }),
);
/** Attempts: how much later than the last one, as part of the time to fill the bucket, and which part of the burst. */
const attempts = (earliest: number) =>
  fc.array(
    fc.tuple(
      fc.double({ min: earliest, max: 1, noNaN: true }),
      fc.oneof(
        fc.integer({ min: 1, max: 20 }).map((n) => n / 20),
        fc.double({ min: 1e-6, max: 1, noNaN: true }),
      ),
    ),
    { minLength: 1, maxLength: 60 },
  );
const fillMs = ({ burst, ratePerMs }: LocalTerms): number => burst / ratePerMs;
const ROUNDING = 1e-9;

describe('the token bucket of the local tier', () => {
  it('admits burst + rate·w at most in every window, whatever the clock does (INV1)', () => {
    fc.assert(
      fc.property(terms, attempts(-1), (terms, attempts) => {
        const bucket = fullBucket(terms, 0);
        const admitted: { at: number; cost: number }[] = [];
        let now = 0;
        let latest = 0;
        for (const [wait, part] of attempts) {
          now += wait * fillMs(terms);
          latest = Math.max(latest, now);
          const cost = part * terms.burst;
          const level = levelAt(bucket, terms, now);
          if (level < cost) continue;
          take(bucket, level, cost, now);
          admitted.push({ at: latest, cost });
        }
        for (const [i, { at: from }] of admitted.entries()) {
          let sum = 0;
          for (const { at, cost } of admitted.slice(i)) {
            sum += cost;
            const bound = terms.burst + (at - from) * terms.ratePerMs;
            expect(sum).toBeLessThanOrEqual(bound * (1 + ROUNDING));
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it('admits all that is earned while more is asked for (INV2)', () => {
    fc.assert(
      fc.property(terms, fc.array(fc.double({ min: 0, max: 3, noNaN: true }), { maxLength: 200 }), (terms, waits) => {
        const cost = terms.burst / 20;
        const bucket = fullBucket(terms, 0);
        let now = 0;
        let admitted = 0;
        for (const wait of [0, ...waits]) {
          now += (wait * cost) / terms.ratePerMs;
          for (let level = levelAt(bucket, terms, now); level >= cost; level = levelAt(bucket, terms, now)) {
            take(bucket, level, cost, now);
            admitted += cost;
          }
        }
        expect(admitted).toBeGreaterThanOrEqual((terms.burst + now * terms.ratePerMs) * (1 - ROUNDING) - cost);
      }),
      { numRuns: 300 },
    );
  });

  it('names the first whole millisecond at which the cost is there (INV3, C01)', () => {
    fc.assert(
      fc.property(terms, attempts(0), fc.integer({ min: 1, max: 1_000 }), (terms, attempts, parts) => {
        const bucket = fullBucket(terms, 0);
        let now = 0;
        for (const [wait, share] of attempts) {
          now += Math.round(wait * fillMs(terms) * 10) / 10;
          const level = levelAt(bucket, terms, now);
          if (level >= share * terms.burst) take(bucket, level, share * terms.burst, now);
        }
        const cost = Math.ceil((parts / 1_000) * terms.burst);
        const wait = waitFor(bucket, terms, cost, now);
        fc.pre(wait < 2 ** 40);
        expect(levelAt(bucket, terms, now + wait)).toBeGreaterThanOrEqual(cost);
        if (wait > 1) expect(levelAt(bucket, terms, now + wait - 1)).toBeLessThan(cost);
        if (wait === 0) expect(levelAt(bucket, terms, now)).toBeGreaterThanOrEqual(cost);
      }),
      { numRuns: 1_000 },
    );
  });

  it('is not changed by denials: whoever asks in between takes nothing (C47)', () => {
    fc.assert(
      fc.property(terms, fc.array(fc.double({ min: 0, max: 10, noNaN: true }), { maxLength: 50 }), (terms, waits) => {
        const bucket = fullBucket(terms, 0);
        take(bucket, terms.burst, terms.burst, 0);
        const untouched = { ...bucket };
        let now = 0;
        for (const wait of waits) {
          now += wait;
          waitFor(bucket, terms, terms.burst, now);
        }
        expect(bucket).toEqual(untouched);
      }),
    );
  });
});
