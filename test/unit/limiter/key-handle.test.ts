import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClosedError, CostAboveBurstError, InvalidCostError, InvalidKeyError } from '../../../src/errors.js';
import { memoryPolicySource } from '../../../src/policy/memory-source.js';
import { allowed, closed, denied, limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';

describe('a key handle', () => {
  it('draws from the bucket that its key has by name', async () => {
    const { api } = await limiterOf({ local: { rate: 1, burst: 4 } });
    const handle = api.key('k');
    expect(handle.key).toBe('k');
    expect([handle.tryAcquire(), api.tryAcquire('k'), api.key('k').tryAcquire(), handle.tryAcquire()]).toEqual(
      Array(4).fill(true),
    );
    expect([handle.tryAcquire(), api.tryAcquire('k')]).toEqual([false, false]);
    expect(api.tryAcquire('another')).toBe(true);
  });

  it('answers whatever the verbs by name would have answered, on any history', async () => {
    const step = fc.record({
      verb: fc.constantFrom('tryAcquire', 'decide', 'acquire'),
      cost: fc.integer({ min: 1, max: 4 }),
      pause: fc.constantFrom(0, 0, 0, 5, 40, 600, 2_500, 20_000),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const policy = { local: { rate: 20, burst: 10 }, ceiling: { rate: 10, burst: 8 } };
        const named = await remoteLimiterOf(policy);
        const held = await remoteLimiterOf(policy);
        const handle = held.api.key('k');
        for (const { verb, cost, pause } of steps) {
          if (verb === 'acquire') {
            const [one, other] = [named.api.acquire('k', { cost }), handle.acquire({ cost })];
            await Promise.all([named.time.advance(30), held.time.advance(30)]);
            expect(await soFar(other)).toEqual(await soFar(one));
          } else expect(handle[verb as 'decide'](cost)).toEqual(named.api[verb as 'decide']('k', cost));
          await Promise.all([named.time.advance(pause), held.time.advance(pause)]);
        }
        expect(held.limiter.stats()).toEqual(named.limiter.stats());
      }),
      { numRuns: 40 },
    );
  });

  it('holds no place for its key, and finds it again after it was dropped', async () => {
    const { api, limiter, time } = await limiterOf({ local: { rate: 10, burst: 2 } }, { maxKeys: 2 });
    const handle = api.key('k');
    expect(limiter.stats()[0]?.keys).toBe(0);
    expect(handle.tryAcquire(2)).toBe(true);
    await time.advance(10_000);
    expect(limiter.stats()[0]?.keys).toBe(0);
    expect(api.tryAcquire('k', 2)).toBe(true);
    expect(handle.tryAcquire()).toBe(false);
    await time.advance(200);
    // Its place is taken by others, which make room again.
    for (const key of ['a', 'b']) expect(api.tryAcquire(key)).toBe(true);
    expect(handle.decide()).toMatchObject({ allowed: true, remaining: 1 });
    expect(api.decide('k')).toMatchObject({ remaining: 0 });
  });

  it('leaves the overflow bucket as soon as there is room for its key', async () => {
    const { api, limiter, time } = await limiterOf({ local: { rate: 1, burst: 1 } }, { maxKeys: 1 });
    const handle = api.key('k');
    expect(api.tryAcquire('first')).toBe(true);
    expect(handle.tryAcquire()).toBe(true);
    expect(handle.decide()).toMatchObject({ allowed: false, reason: 'overflow' });
    expect(limiter.stats()[0]?.overflow).toBe(2);
    await time.advance(1_000);
    expect(handle.tryAcquire()).toBe(true);
    expect(handle.decide()).toMatchObject({ allowed: false, reason: 'empty' });
    expect(limiter.stats()[0]?.overflow).toBe(2);
  });

  it('follows what is published, overrides included', async () => {
    const policySource = memoryPolicySource();
    const { api, limiter } = await limiterOf({ local: { rate: 1, per: '1h', burst: 10 } }, { policySource });
    const handle = api.key('k');
    expect(handle.tryAcquire(8)).toBe(true);
    await limiter.policies.publish({ name: 'api', local: { rate: 1, per: '1h', burst: 1 } });
    expect(handle.decide()).toMatchObject({ allowed: true, limit: 1, remaining: 0 });
    await limiter.policies.publish({
      name: 'api',
      local: { rate: 1, per: '1h', burst: 1 },
      overrides: { k: { mode: 'deny' } },
    });
    expect(handle.decide()).toMatchObject({ allowed: false, reason: 'denied-by-policy' });
  });

  it('waits in the same line as those who name the key', async () => {
    const { api, time } = await limiterOf({ local: { rate: 10, burst: 1 } });
    const handle = api.key('k');
    expect(handle.tryAcquire()).toBe(true);
    const first = handle.acquire({ maxWaitMs: 1_000 });
    const second = api.acquire('k', { maxWaitMs: 1_000 });
    expect(handle.tryAcquire()).toBe(false);
    await time.advance(101);
    allowed(await soFar(first));
    expect(await soFar(second)).toBe('pending');
    await time.advance(100);
    allowed(await soFar(second));
    const controller = new AbortController();
    const aborted = expect(handle.acquire({ maxWaitMs: 1_000, signal: controller.signal })).rejects.toThrow('enough');
    controller.abort(new Error('enough'));
    await aborted;
  });

  it('checks what it is given as the verbs by name do', async () => {
    const { api, limiter, time } = await limiterOf({ local: { rate: 1, burst: 3 } });
    for (const key of ['', 'x'.repeat(513), '\ud800', undefined])
      expect(() => api.key(key as string)).toThrow(InvalidKeyError);
    const handle = api.key('k');
    expect(() => handle.tryAcquire(0)).toThrow(InvalidCostError);
    expect(() => handle.decide(4)).toThrow(CostAboveBurstError);
    await expect(handle.acquire({ cost: 4 })).rejects.toThrow(CostAboveBurstError);
    await expect(handle.acquire({ signal: AbortSignal.abort(new Error('late')) })).rejects.toThrow('late');
    expect(handle.decide(3)).toMatchObject({ allowed: true });
    expect(denied(await handle.acquire({ maxWaitMs: 10 }))).toMatchObject({ reason: 'empty' });
    const waiting = handle.acquire({ maxWaitMs: 5_000 });
    await closed(limiter, time);
    expect(denied(await waiting)).toMatchObject({ reason: 'closed' });
    expect(() => handle.tryAcquire()).toThrow(ClosedError);
    expect(() => handle.decide()).toThrow(ClosedError);
    await expect(handle.acquire()).rejects.toThrow(ClosedError);
  });
});
