import { describe, expect, it } from 'vitest';
import { CostAboveBurstError } from '../../../src/errors.js';
import { memoryPolicySource } from '../../../src/policy/memory-source.js';
import { limiterOf, remoteLimiterOf } from '../../support/limiter-under-test.js';

const local = { rate: 1, burst: 10 };

describe('keys that a pattern stands for', () => {
  it('have buckets of their own under its terms, and follow what is published', async () => {
    const { api, limiter } = await limiterOf(
      { local, overrides: { 'tenant-*': { local: { rate: 1, burst: 50 } } } },
      { policySource: memoryPolicySource() },
    );
    for (const key of ['tenant-1', 'tenant-2']) {
      expect(api.tryAcquire(key, 50)).toBe(true);
      expect(api.tryAcquire(key)).toBe(false);
    }
    expect(() => api.tryAcquire('other', 11)).toThrow(CostAboveBurstError);

    await limiter.policies.publish({ name: 'api', local, deny: ['tenant-*'], allow: ['tenant-2'] });
    expect(api.decide('tenant-1')).toMatchObject({ reason: 'denied-by-policy' });
    expect(api.decide('tenant-2', 50)).toMatchObject({ allowed: true, remaining: Number.POSITIVE_INFINITY });
    await limiter.policies.publish({ name: 'api', local });
    // It fitted once: denied, not thrown.
    expect(api.decide('tenant-1', 50)).toMatchObject({ reason: 'cost-above-burst' });
    expect(() => api.decide('tenant-1', 51)).toThrow(CostAboveBurstError);
  });

  it('are leased under its terms, fenced under its name', async () => {
    const { api, time, remote } = await remoteLimiterOf({
      ceiling: { rate: 10, burst: 10 },
      overrides: { 'big-*': { ceiling: { rate: 100, burst: 100 } } },
    });
    const [big, small] = [api.acquire('big-1', { cost: 60 }), api.acquire('small')];
    await time.advance(20);
    expect((await big).allowed && (await small).allowed).toBe(true);
    const fences = new Map(remote.calls.map(({ key, fence, burst }) => [key, [fence, burst]]));
    expect(fences.get('big-1')).toEqual(['api#big-*', 100_000_000]);
    expect(fences.get('small')).toEqual(['api', 10_000_000]);
  });

  it('are denied or let through where the table is full, too', async () => {
    const { api } = await limiterOf({ local, deny: ['bad-*'], allow: ['good-*'] }, { maxKeys: 1 });
    api.tryAcquire('one', 10);
    for (let i = 0; i < 30; i++) {
      expect(api.decide(`bad-${i}`)).toMatchObject({ allowed: false, reason: 'denied-by-policy' });
      expect(api.decide(`good-${i}`)).toMatchObject({ allowed: true });
    }
    expect(api.decide('two')).toMatchObject({ allowed: true, remaining: 9 });
  });
});
