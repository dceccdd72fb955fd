import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allowed, denied, limiterOf, remoteLimiterOf } from '../../support/limiter-under-test.js';

describe('a decision', () => {
  it('charges nothing in any tier when it denies (C166, C47)', async () => {
    const { api } = await limiterOf({ local: { rate: 1, burst: 10 }, ceiling: { rate: 1, burst: 4 } });
    expect(api.tryAcquire('k', 4)).toBe(true);
    for (let i = 0; i < 20; i++) expect(api.decide('k', 2)).toMatchObject({ limitedBy: 'ceiling', reason: 'empty' });
    const { api: other } = await limiterOf({ local: { rate: 1, burst: 4 }, ceiling: { rate: 1, burst: 10 } });
    expect(other.tryAcquire('k', 4)).toBe(true);
    for (let i = 0; i < 20; i++) expect(other.decide('k', 4)).toMatchObject({ limitedBy: 'local', reason: 'empty' });
    // The local tokens are all there once the ceiling has some, and the ceiling's once the local bucket has.
    const { api: both, time } = await limiterOf({ local: { rate: 1, burst: 6 }, ceiling: { rate: 2, burst: 2 } });
    expect(both.tryAcquire('k', 2)).toBe(true);
    for (let i = 0; i < 5; i++) expect(both.tryAcquire('k', 2)).toBe(false);
    // A ceiling that is full again is so as of the next microsecond, hence the odd one.
    await time.advance(1_001);
    expect(both.tryAcquire('k', 2)).toBe(true);
    await time.advance(1_001);
    expect(both.tryAcquire('k', 2)).toBe(true);
  });

  it('has a retry time that is exact in the local tier: refused at every moment before it, allowed at it (C01, INV3)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({ rate: fc.integer({ min: 1, max: 5_000 }), per: fc.constantFrom('1s', '1m', '1h', 1) }),
        fc.integer({ min: 1, max: 50 }),
        fc.double({ min: 0, max: 3_600_000, noNaN: true }),
        async ({ rate, per }, burst, idle) => {
          const { api, time } = await limiterOf({ local: { rate, burst, per: per as '1s' } });
          while (api.tryAcquire('k'));
          await time.advance(idle);
          while (api.tryAcquire('k'));
          const wait = denied(api.decide('k')).retryAfterMs as number;
          for (const early of [wait - 1, Math.floor(wait / 2)]) {
            if (early < 1) continue;
            time.stall(early);
            expect(api.tryAcquire('k')).toBe(false);
            time.stall(-early);
          }
          time.stall(wait);
          expect(api.tryAcquire('k')).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('has a retry time at which an in-process ceiling allows, and never before which it could (INV3)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 1_000 }),
        fc.integer({ min: 1, max: 200 }),
        fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 0, max: 700 })), {
          maxLength: 8,
        }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (rate, burst, history, share) => {
          const { api, time } = await limiterOf({ ceiling: { rate, burst } });
          const start = time.now();
          let spent = 0;
          const costOf = (fraction: number): number => Math.max(1, Math.round(fraction * burst));
          for (const [fraction, pause] of history) {
            if (api.tryAcquire('k', costOf(fraction))) spent += costOf(fraction);
            await time.advance(pause);
          }
          const cost = costOf(share);
          const decision = api.decide('k', cost);
          if (decision.allowed) return;
          const wait = decision.retryAfterMs as number;
          // What a bucket that lost nothing could have at most by then.
          const due = Math.min(burst, burst + (rate * (time.now() + wait - start)) / 1_000 - spent);
          expect(due).toBeGreaterThanOrEqual(cost - 1e-6);
          await time.advance(wait);
          expect(api.decide('k', cost)).toMatchObject({ allowed: true });
        },
      ),
      { numRuns: 60 },
    );
  });

  it('lets a smaller cost pass though a larger one has just been denied (C46)', async () => {
    const { api } = await limiterOf({ ceiling: { rate: 1, per: '10s', burst: 10 } });
    expect(api.tryAcquire('k', 8)).toBe(true);
    expect(api.decide('k', 5)).toMatchObject({ allowed: false, reason: 'empty', retryAfterMs: 30_001 });
    expect(api.tryAcquire('k', 2)).toBe(true);
  });

  it('lets a first large cost pass, however large a part of the bucket it is', async () => {
    for (const cost of [1, 10, 60, 99, 100]) {
      const { api } = await limiterOf({ ceiling: { rate: 100, burst: 100 } });
      expect(api.tryAcquire('k', cost)).toBe(true);
    }
  });

  it('says what remains, of how much, and until when: local (C118)', async () => {
    const { api, time } = await limiterOf({ local: { rate: 30, per: '1m', burst: 16 } });
    expect(api.decide('k')).toMatchObject({ remaining: 15, limit: 16, resetAfterMs: 2_000 });
    for (let i = 0; i < 3; i++) api.tryAcquire('k');
    expect(api.decide('k')).toMatchObject({ remaining: 11, resetAfterMs: 10_000 });
    expect(api.decide('k', 11)).toMatchObject({ remaining: 0, resetAfterMs: 32_000 });
    expect(api.decide('k')).toMatchObject({ allowed: false, retryAfterMs: 2_000, remaining: 0, resetAfterMs: 32_000 });
    await time.advance(500);
    expect(api.decide('k')).toMatchObject({ allowed: false, retryAfterMs: 1_500, resetAfterMs: 31_500 });
  });

  it('says what remains of a ceiling in this process, and what it promises is there', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 300 }),
        fc.integer({ min: 1, max: 100 }),
        fc.array(fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 0, max: 400 })), {
          minLength: 1,
          maxLength: 10,
        }),
        async (rate, burst, history) => {
          const { api, time } = await limiterOf({ ceiling: { rate, burst } });
          for (const [cost, pause] of history) {
            const { remaining, limit } = api.decide('k', Math.min(cost, burst));
            expect(limit).toBe(burst);
            if (remaining > 0) expect(api.decide('k', remaining)).toMatchObject({ allowed: true });
            await time.advance(pause);
          }
        },
      ),
      { numRuns: 60 },
    );
    const { api } = await limiterOf({ ceiling: { rate: 10, burst: 100 } });
    expect(api.decide('k', 30)).toMatchObject({ remaining: 70, limit: 100, resetAfterMs: 3_000 });
    expect(api.decide('k', 30)).toMatchObject({ remaining: 40, limit: 100, resetAfterMs: 6_000 });
  });

  it('says of a ceiling elsewhere only what this instance holds, and nothing of when it is full', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 10, burst: 100 } });
    const first = api.acquire('k', { cost: 3 });
    await time.advance(20);
    expect(allowed(await first)).toMatchObject({ remaining: 0, limit: 100, resetAfterMs: undefined });
    expect(remote.calls[0]).toMatchObject({ need: 3_000_000, head: 3_000_000, want: 0 });
  });

  it('carries the smaller of two tiers, and the version that decided', async () => {
    const { api } = await limiterOf({ version: 7, local: { rate: 1, burst: 5 }, ceiling: { rate: 1, burst: 3 } });
    expect(api.decide('k')).toEqual({
      allowed: true,
      policy: 'api',
      policyVersion: 7,
      remaining: 2,
      limit: 3,
      resetAfterMs: 1_000,
      degraded: false,
    });
    expect(api.decide('k', 3)).toEqual({
      allowed: false,
      policy: 'api',
      policyVersion: 7,
      remaining: 2,
      limit: 3,
      resetAfterMs: 1_000,
      degraded: false,
      limitedBy: 'ceiling',
      reason: 'empty',
      retryAfterMs: 1_001,
    });
  });
});
