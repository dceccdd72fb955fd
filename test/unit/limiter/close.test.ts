import { describe, expect, it } from 'vitest';
import { ClosedError } from '../../../src/errors.js';
import type { PolicyDocument } from '../../../src/policy/policy.js';
import { ManualTime } from '../../../src/testing.js';
import { closed, denied, limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';

describe('close', () => {
  it('answers whoever waits, "closed", and counts them (C179)', async () => {
    const { api, limiter, time } = await limiterOf({ local: { rate: 1, burst: 1 } });
    api.tryAcquire('k');
    const waits = [api.acquire('k', { maxWaitMs: 5_000 }), api.acquire('k', { maxWaitMs: 5_000 })];
    await closed(limiter, time);
    for (const wait of waits) {
      expect(denied(await soFar(wait))).toMatchObject({
        limitedBy: 'policy',
        reason: 'closed',
        retryAfterMs: undefined,
      });
    }
    const [stats] = limiter.stats();
    expect(stats).toMatchObject({ allowed: 1, deniedPolicy: 2, waiting: 0 });
    expect(time.pending).toBe(0);
  });

  it('answers "closed" under a shadow policy too', async () => {
    const { api, limiter, time, remote } = await remoteLimiterOf({ mode: 'shadow', ceiling: { rate: 1, burst: 1 } });
    remote.fate = 'lose-call';
    const waiting = api.acquire('k');
    const closing = limiter.close();
    expect(denied(await soFar(waiting)).reason).toBe('closed');
    await time.advance(300);
    await closing;
  });

  it('returns what is held, also what is still on its way, and takes no longer than two deadlines', async () => {
    const { api, limiter, time, remote } = await remoteLimiterOf({ ceiling: { rate: 100, burst: 100 } });
    api.tryAcquire('held', 40);
    await time.advance(11);
    api.tryAcquire('under way', 30);
    await time.advance(1);
    const closing = limiter.close();
    await time.advance(100);
    expect(await soFar(closing)).toBeUndefined();
    const [stats] = limiter.stats();
    expect(stats).toMatchObject({ tokensHeld: 0, tokensReturned: 70, tokensGranted: 70 });
    expect(time.pending).toBe(0);
    expect(remote.closed).toBe(1);
  });

  it('once leaves no timer, however many policies and callers there were (C70)', async () => {
    const time = new ManualTime(1_000);
    const policies: PolicyDocument[] = ['api', 'b', 'c'].map((name) => ({ name, ceiling: { rate: 10, burst: 10 } }));
    const before = time.pending;
    const { limiter } = await remoteLimiterOf({}, { time, policies });
    for (let round = 0; round < 2; round++) {
      for (const { name } of policies) limiter.policy(name).tryAcquire('k');
      await time.advance(20);
    }
    expect(time.pending).toBeGreaterThan(before);
    await closed(limiter, time);
    expect(time.pending).toBe(before);
  });

  it('ends though the store never answers', async () => {
    const { api, limiter, time, remote } = await remoteLimiterOf({ ceiling: { rate: 100, burst: 100 } });
    api.tryAcquire('k', 40);
    await time.advance(11);
    remote.fate = 'lose-call';
    const closing = limiter.close();
    await time.advance(200);
    expect(await soFar(closing)).toBeUndefined();
    expect(time.pending).toBe(0);
  });

  it('twice is once, and `await using` does it', async () => {
    const { limiter, time, remote } = await remoteLimiterOf({ ceiling: { rate: 1, burst: 1 } });
    expect(limiter.close()).toBe(limiter.close());
    await closed(limiter, time);
    await limiter[Symbol.asyncDispose]();
    expect(remote.closed).toBe(1);
  });

  it('makes every verb say so', async () => {
    const { api, limiter, time } = await limiterOf({ local: { rate: 1, burst: 1 } });
    await closed(limiter, time);
    expect(() => api.tryAcquire('k')).toThrow(ClosedError);
    expect(() => api.decide('k')).toThrow(ClosedError);
    await expect(api.acquire('k')).rejects.toThrow(ClosedError);
    expect(() => limiter.policy('api')).toThrow(ClosedError);
    expect(() => api.tryAcquire('k')).toThrow('Expected an open limiter, got one that is closed.');
  });
});
