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
});
