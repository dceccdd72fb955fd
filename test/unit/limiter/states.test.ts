import { describe, expect, it } from 'vitest';
import { allowed, denied, limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';

const ceiling = { rate: 10, burst: 10 };

describe('a key with a remote ceiling is', () => {
  it('cold until the first lease is here: tryAcquire denies and fetches (C158)', async () => {
    const { api, time } = await remoteLimiterOf({ ceiling });
    expect(api.decide('k')).toMatchObject({ allowed: false, limitedBy: 'ceiling', reason: 'cold', degraded: false });
    expect(api.decide('k')).toMatchObject({ reason: 'cold', retryAfterMs: 1 });
    await time.advance(10.5);
    expect(api.tryAcquire('k')).toBe(true);
  });

  it('active while its lease lives: no call is made, however often it is asked', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 100, burst: 100 } });
    api.tryAcquire('k', 50);
    await time.advance(10.5);
    const { length } = remote.calls;
    for (let i = 0; i < 30; i++) expect(api.tryAcquire('k')).toBe(true);
    expect(remote.calls.length).toBe(length);
  });

  it('dry when the lease is spent and the fleet has no more: "empty"', async () => {
    const { api, time } = await remoteLimiterOf({ ceiling: { rate: 1, burst: 2 } });
    api.tryAcquire('k', 2);
    await time.advance(10.5);
    expect(api.tryAcquire('k', 2)).toBe(true);
    await time.advance(0.5);
    api.tryAcquire('k');
    await time.advance(10.5);
    expect(api.decide('k')).toMatchObject({ allowed: false, limitedBy: 'ceiling', reason: 'empty', degraded: false });
  });

  it('expired when a lease ended with tokens in it, which are never spent (C160, C148)', async () => {
    const { api, time, remote, limiter } = await remoteLimiterOf({ ceiling, lease: { durationMs: 400 } });
    api.tryAcquire('k', 5);
    await time.advance(10.5);
    remote.fate = 'lose-call';
    expect(api.tryAcquire('k', 2)).toBe(true);
    // Nothing runs meanwhile: what is dead is noticed when it is to be spent, not by a timer.
    time.stall(395);
    expect(api.decide('k')).toMatchObject({ allowed: false, reason: 'expired', remaining: 0 });
    await time.advance(0);
    expect(limiter.stats()[0]).toMatchObject({ tokensExpired: 3, tokensSpent: 2 });
  });

  it('spendable until the last moment of its lease, 1 % before the store ends it', async () => {
    const { api, time } = await remoteLimiterOf({ ceiling, lease: { durationMs: 1_000 } });
    api.tryAcquire('k', 5);
    await time.advance(10);
    time.stall(979.9);
    expect(api.tryAcquire('k')).toBe(true);
    time.stall(0.1);
    expect(api.tryAcquire('k')).toBe(false);
  });

  it('degraded when the store is out of reach and nothing is in hand (C80)', async () => {
    const { api, time, remote, limiter } = await remoteLimiterOf({ ceiling });
    remote.ready = false;
    api.tryAcquire('k');
    await time.advance(1);
    const decision = denied(api.decide('k'));
    expect(decision).toMatchObject({ limitedBy: 'ceiling', reason: 'degraded', degraded: true, remaining: 0 });
    expect(decision.retryAfterMs).toBeGreaterThan(0);
    expect(limiter.degraded).toBe(true);
    expect(denied(await soFar(api.acquire('k')))).toMatchObject({ reason: 'degraded' });
  });

  it('active still when the store is out of reach but tokens are in hand', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling });
    api.tryAcquire('k', 5);
    await time.advance(10.5);
    remote.ready = false;
    api.tryAcquire('other');
    await time.advance(1);
    expect(api.decide('k')).toMatchObject({ allowed: true, degraded: true });
  });
});

describe('a ceiling in this process', () => {
  it('answers the very first call', async () => {
    const { api } = await limiterOf({ ceiling });
    expect(api.decide('k', 10)).toMatchObject({ allowed: true, remaining: 0 });
    expect(api.decide('k')).toMatchObject({ allowed: false, reason: 'empty' });
  });

  it('fills up again from the moment it was spent, though nobody asks (C20, INV2)', async () => {
    const { api, time } = await limiterOf({ ceiling: { rate: 10, per: '10s', burst: 10 } });
    await time.advance(3_600_000);
    expect(api.tryAcquire('k', 10)).toBe(true);
    expect(api.decide('k', 10)).toMatchObject({ allowed: false, retryAfterMs: 10_001 });
    await time.advance(10_001);
    expect(api.tryAcquire('k', 10)).toBe(true);
  });

  it.each([0.1, 1, 3, 7])('is not slowed by being asked every %f ms (C14)', async (step) => {
    for (const tier of ['local', 'ceiling'] as const) {
      const { api, time } = await limiterOf({ [tier]: { rate: 100, burst: 10 } });
      while (api.tryAcquire('k'));
      let admitted = 0;
      for (let at = step; at <= 1_000; at += step) {
        await time.advance(step);
        if (api.tryAcquire('k')) admitted += 1;
      }
      expect(admitted).toBeGreaterThanOrEqual(98);
      expect(admitted).toBeLessThanOrEqual(101);
    }
  });

  it.each([
    [2_000, 2_000, 200],
    [1_500, 2_000, 150],
    [8_000, 8_000, 800],
  ])('admits %i a second of a drained bucket, polled each ms (C08)', async (rate, burst, expected) => {
    for (const tier of ['local', 'ceiling'] as const) {
      const { api, time } = await limiterOf({ [tier]: { rate, burst } });
      api.tryAcquire('k', burst);
      let admitted = 0;
      for (let ms = 0; ms < 100; ms++) {
        await time.advance(1);
        while (api.tryAcquire('k')) admitted += 1;
      }
      expect(Math.abs(admitted - expected)).toBeLessThanOrEqual(1);
    }
  });

  it('keeps the buckets of two policies apart, and of two keys (C106, C167)', async () => {
    const { limiter } = await limiterOf(
      { ceiling: { rate: 5, per: '1m', burst: 5 } },
      {
        policies: [
          { name: 'api', ceiling: { rate: 5, per: '1m', burst: 5 } },
          { name: 'day', ceiling: { rate: 50, per: '1d', burst: 50 } },
        ],
      },
    );
    const minute = limiter.policy('api');
    const day = limiter.policy('day');
    const outcomes = Array.from({ length: 6 }, () => minute.tryAcquire('K') && day.tryAcquire('K'));
    expect(outcomes).toEqual([true, true, true, true, true, false]);
    expect(allowed(day.decide('K')).remaining).toBe(44);
    expect(minute.tryAcquire('other')).toBe(true);
  });

  it('is one bucket for a policy, whoever holds on to its limiter (C107)', async () => {
    const { limiter } = await limiterOf({ ceiling: { rate: 10, per: '1m', burst: 10 } });
    const routes = [limiter.policy('api'), limiter.policy('api'), limiter.policy('api')];
    expect(new Set(routes).size).toBe(1);
    let passed = 0;
    for (const route of routes) for (let i = 0; i < 10; i++) passed += Number(route.tryAcquire('k'));
    expect(passed).toBe(10);
  });
});
