import { describe, expect, it } from 'vitest';
import { levelAt, waitFor } from '../../../src/algorithm/token-bucket.js';

/** Whether the cost is there at the end of the wait, and whether it was a millisecond before. */
function around({ tokens, ratePerMs, cost }: { tokens: number; ratePerMs: number; cost: number }) {
  const bucket = { tokens, at: 0 };
  const terms = { ratePerMs, burst: 100 };
  const wait = waitFor(bucket, terms, cost, 0);
  return { wait, there: levelAt(bucket, terms, wait) >= cost, earlier: levelAt(bucket, terms, wait - 1) >= cost };
}

describe('how long a caller is told to wait', () => {
  it('is a millisecond longer than the division says, where that rounds down', () => {
    // 27 / 0.009 is 3000, and 3000 * 0.009 is less than 27.
    expect(3_000 * 0.009).toBeLessThan(27);
    expect(around({ tokens: 0, ratePerMs: 0.009, cost: 27 })).toEqual({ wait: 3_001, there: true, earlier: false });
  });

  it('is a millisecond shorter than it says, where that rounds up', () => {
    // (33 − 0.3) / 0.001 is more than 32,700, after which 33 are there.
    expect((33 - 0.3) / 0.001).toBeGreaterThan(32_700);
    expect(around({ tokens: 0.3, ratePerMs: 0.001, cost: 33 })).toEqual({ wait: 32_700, there: true, earlier: false });
  });

  it('is found at once where a last digit of the tokens takes an age to earn', () => {
    // 2^-46 of a token is missing, which 10^-25 a millisecond earns in 4,500 years; half of that rounds up to it.
    const tokens = 100 - 2 ** -46;
    const { wait, there, earlier } = around({ tokens, ratePerMs: 1e-25, cost: 100 });
    expect({ there, earlier }).toEqual({ there: true, earlier: false });
    expect(wait).toBeLessThan(2 ** -46 / 1e-25);
    expect(wait).toBeGreaterThan((2 ** -46 / 1e-25) * 0.49);
  });

  it('is a number of milliseconds also where there are more than 2^53', () => {
    for (const ratePerMs of [1e-15, 1e-19, 1e-25]) {
      const bucket = { tokens: 0, at: 0 };
      const wait = waitFor(bucket, { ratePerMs, burst: 100 }, 100, 0);
      expect(levelAt(bucket, { ratePerMs, burst: 100 }, wait)).toBeGreaterThanOrEqual(100);
      expect(wait).toBeGreaterThan((100 / ratePerMs) * 0.99);
    }
  });
});
