import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { retryAfterSeconds, spreadMs } from '../../../src/http/index.js';

describe('a spread time to come back', () => {
  it('is never earlier than the true one, and later by no more than the backlog or the cap', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1e7, noNaN: true }),
        fc.double({ min: 0, max: 1e6, noNaN: true }),
        fc.double({ min: 1e-3, max: 1e4, noNaN: true }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.integer({ min: 0, max: 100_000 }),
        (retryAfterMs, backlog, tokensPerSecond, chance, mostMs) => {
          const spread = spreadMs(retryAfterMs, { backlog, tokensPerSecond, mostMs }, () => chance);
          expect(spread).toBeGreaterThanOrEqual(retryAfterMs);
          expect(spread - retryAfterMs).toBeLessThanOrEqual(
            Math.min(mostMs, (backlog / tokensPerSecond) * 1_000) + 1e-6,
          );
        },
      ),
    );
  });

  it('is the true one without a backlog, and is the same for the same chance', () => {
    expect(spreadMs(400, { backlog: 0, tokensPerSecond: 100 }, () => 0.9)).toBe(400);
    expect(spreadMs(400, { backlog: -3, tokensPerSecond: 100 }, () => 0.9)).toBe(400);
    expect(spreadMs(400, { backlog: 5, tokensPerSecond: 0 }, () => 0.9)).toBe(400);
    expect(spreadMs(400, { backlog: 50, tokensPerSecond: 100 }, () => 0.5)).toBe(650);
    expect(spreadMs(400, { backlog: 1e9, tokensPerSecond: 1 }, () => 0.5)).toBe(30_400);
  });

  it('serves a crowd of 2,000 in far fewer requests than the same time for everybody', () => {
    const requestsPerAdmission = (spread: boolean): number => {
      let state = 7;
      const random = () => {
        state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
        return state / 2 ** 31;
      };
      const rate = 100;
      let backlog = 0;
      let tokens = 100;
      let requests = 0;
      let waiting = Array.from({ length: 2_000 }, (_, i) => i / 2_000);
      for (let now = 0; waiting.length > 0 && now < 200; now += 0.01) {
        tokens = Math.min(100, tokens + rate * 0.01);
        backlog = Math.max(0, backlog - rate * 0.01);
        const due = waiting.filter((at) => at <= now);
        waiting = waiting.filter((at) => at > now);
        for (const _ of due) {
          requests += 1;
          if (tokens >= 1) tokens -= 1;
          else {
            const next = ((1 - tokens) / rate) * 1_000;
            backlog += 1;
            const ms = spread ? spreadMs(next, { backlog, tokensPerSecond: rate }, random) : next;
            waiting.push(now + retryAfterSeconds(ms));
          }
        }
      }
      return requests / 2_000;
    };
    expect(requestsPerAdmission(true)).toBeLessThan(4);
    expect(requestsPerAdmission(false)).toBeGreaterThan(7);
  });
});

it('Retry-After is whole, at least 1, and never early', () => {
  expect([0, 0.1, 1, 999, 1_000, 1_000.001, 59_999].map(retryAfterSeconds)).toEqual([1, 1, 1, 1, 1, 2, 60]);
});
