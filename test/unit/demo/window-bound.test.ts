import { describe, expect, it } from 'vitest';
import { isBroken, type TermsChange, worstWindows } from '../../../src/demo/window-bound.js';

const TERMS = { rate: 10, burst: 5 };
const every = (stepMs: number, n: number, fromMs = 0): number[] =>
  Array.from({ length: n }, (_, i) => fromMs + i * stepMs);
const at = (...times: number[]): Float64Array => Float64Array.from(times);

describe('worstWindows', () => {
  it('finds a full burst and then the exact rate within the bound, with nothing to spare', () => {
    const [worst] = worstWindows(at(0, 0, 0, 0, 0, ...every(100, 20, 100)), TERMS);
    expect(worst?.headroom).toBeCloseTo(0, 9);
    expect(isBroken(worst ?? { headroom: -1 })).toBe(false);
  });

  it('finds one admission too many, wherever it is', () => {
    for (const extra of [0, 50, 1_250, 1_999]) {
      const times = at(0, 0, 0, 0, 0, ...every(100, 20, 100), extra).sort();
      const [worst] = worstWindows(times, TERMS);
      expect(worst && isBroken(worst), `extra at ${extra}`).toBe(true);
      expect(worst?.admitted).toBeGreaterThan(worst?.allowed ?? Number.POSITIVE_INFINITY);
    }
  });

  it('finds a broken window in the middle of a long history that is far below the bound on the whole', () => {
    const times = at(...every(1_000, 50), ...every(1, 7, 60_000), ...every(1_000, 50, 70_000));
    const [worst] = worstWindows(times, TERMS);
    expect(worst).toMatchObject({ phase: 'before', admitted: 7, fromMs: 60_000 });
    expect(worst?.widthMs).toBe(6);
    expect(worst?.allowed).toBeCloseTo(5.06, 9);
  });

  it('agrees with looking at every window one by one', () => {
    let seed = 7;
    const random = (): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    for (let round = 0; round < 50; round++) {
      const times = Float64Array.from({ length: 40 }, () => random() * 4_000).sort();
      let least = Number.POSITIVE_INFINITY;
      for (const [j, b] of times.entries()) {
        for (const [i, a] of times.subarray(0, j + 1).entries()) {
          least = Math.min(least, 5 + (10 * (b - a)) / 1_000 - (j - i + 1));
        }
      }
      expect(worstWindows(times, TERMS)[0]?.headroom).toBeCloseTo(least, 9);
    }
  });

  it('has nothing to say of no admissions', () => {
    expect(worstWindows(at(), TERMS)).toEqual([]);
  });

  describe('across a change of terms', () => {
    const change: TermsChange = {
      after: { rate: 2, burst: 2 },
      from: 1_000,
      until: 1_010,
      outstanding: 4,
      settledAt: 3_000,
    };

    it('holds windows before it to the old terms, and those after it to the new ones', () => {
      const windows = worstWindows(at(0, 0, 0, 0, 0, ...every(500, 6, 4_000)), TERMS, change);
      expect(windows.map(({ phase }) => phase)).toEqual(['before', 'across', 'after']);
      expect(windows.some(isBroken)).toBe(false);
    });

    it('finds old terms that go on after it', () => {
      const windows = worstWindows(at(...every(100, 10, 4_000)), TERMS, change);
      expect(windows.find(isAfter)?.headroom).toBeCloseTo(2 + 2 * 0.9 - 10, 9);
    });

    it('allows what was outstanding beyond the new burst to be spent, until it has been paid off', () => {
      const four = (fromMs: number) => worstWindows(at(...every(0, 4, fromMs)), TERMS, change).find(isAfter);
      expect(four(1_500)?.headroom).toBeCloseTo(0, 9);
      expect(four(3_500)?.headroom).toBeCloseTo(-2, 9);
    });

    it('bounds windows across it by both rates, each for its part', () => {
      // Burst 5, 10 a second up to 1,010 ms, 2 a second from 1,000 ms on: 5 + 10.1 + 2 for a second on either side.
      const times = (n: number): Float64Array => at(...every(0, n - 1), 2_000);
      const across = (n: number) => worstWindows(times(n), TERMS, change).find(({ phase }) => phase === 'across');
      expect(across(17)?.allowed).toBeCloseTo(17.1, 9);
      expect(across(17) && isBroken(across(17) ?? { headroom: 0 })).toBe(false);
      expect(isBroken(across(18) ?? { headroom: 0 })).toBe(true);
    });
  });
});

function isAfter({ phase }: { phase: string }): boolean {
  return phase === 'after';
}
