import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Level, multiplyDivide, refill, refillTime } from '../../src/ceiling/exact.js';
import type { CeilingTerms } from '../../src/policy/policy.js';

const LIMIT = 2 ** 52 - 1;
const terms: fc.Arbitrary<CeilingTerms> = fc.record({
  burst: fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
  rateNum: fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: LIMIT })),
  rateDen: fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: LIMIT })),
});
/** Lengths of time that come one after the other, from a microsecond to years. */
const spans = fc.array(
  fc.oneof(
    fc.integer({ min: 0, max: 10 }),
    fc.integer({ min: 0, max: 10 ** 7 }),
    fc.integer({ min: 0, max: 10 ** 15 }),
  ),
  { minLength: 1, maxLength: 20 },
);

function level(tokens: number): Level {
  return { tokens, remainder: 0, at: 1_000 };
}

describe('exact arithmetic (rule 12)', () => {
  it('divides a product as BigInt does, however far the product is beyond 2^53', () => {
    const carried = fc.tuple(
      fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
      fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
      fc.integer({ min: 1, max: LIMIT }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    );
    let looked = 0;
    fc.assert(
      fc.property(carried, ([a, b, divisor, part]) => {
        const carry = Math.floor(part * divisor);
        const product = BigInt(a) * BigInt(b) + BigInt(carry);
        const quotient = product / BigInt(divisor);
        fc.pre(quotient <= BigInt(Number.MAX_SAFE_INTEGER));
        looked += 1;
        const got = multiplyDivide(a, b, divisor, carry);
        expect([BigInt(got.quotient), BigInt(got.remainder)]).toEqual([quotient, product % BigInt(divisor)]);
      }),
      { numRuns: 2_000 },
    );
    expect(looked).toBeGreaterThan(200);
  });

  it('refills as BigInt does: never more, never a micro-token less than was earned', () => {
    fc.assert(
      fc.property(terms, spans, (terms, spans) => {
        const under = level(0);
        let now = 1_000;
        let earned = 0n;
        for (const span of spans) {
          if (now + span > 2 ** 52) break;
          now += span;
          refill(under, now, terms, terms.burst);
          earned = (BigInt(now - 1_000) * BigInt(terms.rateNum)) / BigInt(terms.rateDen);
          if (earned >= BigInt(terms.burst)) break; // Full: from here on it stands still.
          expect(BigInt(under.tokens)).toBe(earned);
        }
        expect(BigInt(under.tokens)).toBe(earned < BigInt(terms.burst) ? earned : BigInt(terms.burst));
      }),
      { numRuns: 1_000 },
    );
  });

  it('gives the same whether a span is paid at once or in pieces', () => {
    fc.assert(
      fc.property(terms, spans, (terms, spans) => {
        const [whole, pieces] = [level(0), level(0)];
        let now = 1_000;
        for (const span of spans) {
          if (now + span > 2 ** 52) break;
          now += span;
          refill(pieces, now, terms, terms.burst);
        }
        refill(whole, now, terms, terms.burst);
        expect(pieces.tokens).toBe(whole.tokens);
        if (whole.tokens < terms.burst) expect(pieces).toEqual(whole);
      }),
      { numRuns: 1_000 },
    );
  });

  it('pays nothing for a clock that goes back, nor for the same time when it comes round again', () => {
    fc.assert(
      fc.property(terms, fc.array(fc.integer({ min: -(10 ** 6), max: 10 ** 6 }), { maxLength: 30 }), (terms, steps) => {
        const [wandering, straight] = [level(0), level(0)];
        let now = 1_000;
        let latest = now;
        for (const step of steps) {
          now = Math.max(0, now + step);
          latest = Math.max(latest, now);
          const before = wandering.tokens;
          refill(wandering, now, terms, terms.burst);
          expect(wandering.tokens).toBeGreaterThanOrEqual(before);
        }
        refill(straight, latest, terms, terms.burst);
        expect(wandering.tokens).toBeLessThanOrEqual(straight.tokens);
      }),
      { numRuns: 500 },
    );
  });

  it('names a time to refill that is never too short and at most a microsecond too long', () => {
    fc.assert(
      fc.property(terms, fc.double({ min: 0, max: 1, noNaN: true }), (terms, part) => {
        const missing = Math.max(1, Math.floor(part * Math.min(terms.burst, 10 ** 12)));
        const exact = (BigInt(missing) * BigInt(terms.rateDen) + BigInt(terms.rateNum) - 1n) / BigInt(terms.rateNum);
        fc.pre(exact < 2n ** 50n);
        const named = BigInt(refillTime(missing, terms));
        expect(named >= exact).toBe(true);
        expect(named <= exact + 1n + exact / 2n ** 50n).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });
});
