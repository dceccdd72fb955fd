import { describe, expect, it } from 'vitest';
import { denied, limiterOf, remoteLimiterOf } from '../../support/limiter-under-test.js';

describe('clocks', () => {
  it('that show a suspended machine cost the leases, as soon as that is noticed (C32)', async () => {
    const { api, time, limiter } = await remoteLimiterOf({
      ceiling: { rate: 10, burst: 50 },
      lease: { durationMs: 5_000 },
    });
    api.tryAcquire('k', 50);
    await time.advance(11);
    expect(limiter.stats()[0]?.tokensHeld).toBe(50);
    // Linux: the monotonic clock stood still for ten hours.
    time.stepWall(36_000_000);
    await time.advance(600);
    expect(limiter.stats()[0]).toMatchObject({ tokensHeld: 0, tokensExpired: 50 });
    expect(api.tryAcquire('k')).toBe(false);
  });

  it('that drift apart slowly cost nothing', async () => {
    const { api, time, limiter } = await remoteLimiterOf({
      ceiling: { rate: 10, burst: 50 },
      lease: { durationMs: 60_000 },
    });
    api.tryAcquire('k', 50);
    await time.advance(11);
    time.stepWall(100);
    expect(api.tryAcquire('k')).toBe(true);
    await time.advance(450);
    expect(limiter.stats()[0]?.tokensExpired).toBe(0);
  });

  it('that go back mint nothing and lock nobody out (C28, C29, C31)', async () => {
    const { api, time } = await limiterOf({ local: { rate: 10, per: '1m', burst: 10 } });
    api.tryAcquire('k', 10);
    for (const back of [500, 600_000]) {
      time.stall(-back);
      expect(denied(api.decide('k')).retryAfterMs).toBeLessThanOrEqual(6_000);
      time.stall(back);
    }
    let passed = 0;
    for (let i = 0; i < 20; i++) {
      time.stall(i % 2 === 0 ? -1_000 : 1_000);
      passed += Number(api.tryAcquire('k'));
    }
    expect(passed).toBe(0);
    time.stall(6_000);
    expect(api.tryAcquire('k')).toBe(true);
  });

  it('that go back with a lease in hand drop it: how long it has lived can not be told', async () => {
    const { api, time, limiter } = await remoteLimiterOf({
      ceiling: { rate: 10, burst: 50 },
      lease: { durationMs: 1_000 },
    });
    api.tryAcquire('k', 50);
    await time.advance(11);
    time.stall(-5_000);
    time.stepWall(5_000);
    // The next look of the keeper, which any key can cause.
    api.tryAcquire('another');
    await time.advance(11);
    expect(limiter.stats()[0]?.tokensHeld).toBeLessThanOrEqual(1);
  });

  it('idle for long pay for no more than a full bucket (C20, C23)', async () => {
    for (const idle of [5_000, 86_400_000, 315_360_000_000]) {
      for (const tier of ['local', 'ceiling'] as const) {
        const { api, time } = await limiterOf({ [tier]: { rate: 3, per: '500ms', burst: 3 } });
        api.tryAcquire('k');
        await time.advance(0);
        time.stall(idle);
        expect([1, 2, 3, 4].map(() => api.tryAcquire('k'))).toEqual([true, true, true, false]);
      }
    }
  });
});
