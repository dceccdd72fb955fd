import { describe, expect, it } from 'vitest';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import type { PolicyDocument } from '../../../src/policy/policy.js';
import { memoryPolicySource } from '../../../src/testing.js';
import { allowed, denied, limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';

function published(): Pick<LimiterOptions, 'policySource'> {
  return { policySource: memoryPolicySource() };
}

describe('a published policy', () => {
  it('carries local tokens over as they are, in proportion, by the change, or anew', async () => {
    const cases = [
      ['as-is', 4, 14],
      ['proportional', 8, 18],
      ['additive', 14, 24],
      ['reset', 20, 20],
    ] as const;
    for (const [inheritance, after, later] of cases) {
      const { api, limiter, time } = await limiterOf({ local: { rate: 1, per: '1h', burst: 10 } }, published());
      api.tryAcquire('k', 6);
      await limiter.policies.publish({ name: 'api', local: { rate: 1, burst: 20 }, inheritance });
      const remaining = (): number => Math.floor(allowed(api.decide('k', 0.000001)).remaining + 0.5);
      expect([inheritance, remaining()]).toEqual([inheritance, after - 1]);
      await time.advance(10_000);
      expect([inheritance, remaining()]).toEqual([inheritance, Math.min(20, later) - 1]);
    }
  });

  it('keeps what was spent, not what was denied (C47, C137)', async () => {
    const { api, limiter } = await limiterOf({ local: { rate: 10, per: '1h', burst: 10 } }, published());
    for (let i = 0; i < 50; i++) api.tryAcquire('k');
    await limiter.policies.publish({ name: 'api', local: { rate: 20, per: '1h', burst: 20 }, inheritance: 'additive' });
    const outcomes = Array.from({ length: 11 }, () => api.tryAcquire('k'));
    expect(outcomes.filter(Boolean)).toHaveLength(10);
    expect(outcomes.at(-1)).toBe(false);
  });

  it('pays a key nobody asked for by the old rate up to the change, and by the new one from then on', async () => {
    const { api, limiter, time } = await limiterOf({ local: { rate: 1, burst: 100 } }, published());
    api.tryAcquire('k', 100);
    await time.advance(10_000);
    await limiter.policies.publish({ name: 'api', local: { rate: 2, burst: 100 } });
    await time.advance(10_000);
    expect(allowed(api.decide('k')).remaining).toBe(29);
  });

  it('that tightens a full bucket clamps it, and refills at the new rate (C133, C134)', async () => {
    const { api, limiter, time } = await limiterOf({ local: { rate: 10, burst: 10 } }, published());
    api.tryAcquire('k', 3);
    await limiter.policies.publish({ name: 'api', local: { rate: 5, burst: 5 } });
    expect(Array.from({ length: 6 }, () => api.tryAcquire('k')).filter(Boolean)).toHaveLength(5);
    const decision = denied(api.decide('k'));
    expect(decision.retryAfterMs).toBe(200);
    await time.advance(200);
    expect(api.tryAcquire('k')).toBe(true);
  });

  it('that tightens gives back what is held above the new terms (C134)', async () => {
    const { api, limiter, time, remote } = await remoteLimiterOf({ ceiling: { rate: 100, burst: 100 } }, published());
    api.tryAcquire('k', 80);
    await time.advance(11);
    expect(limiter.stats()[0]?.tokensHeld).toBe(80);
    await limiter.policies.publish({ name: 'api', ceiling: { rate: 1, burst: 10 } });
    await time.advance(20);
    const [stats] = limiter.stats();
    expect(stats?.tokensHeld).toBeLessThanOrEqual(10);
    expect(stats?.tokensReturned).toBeGreaterThanOrEqual(70);
    expect(remote.calls.at(-1)).toMatchObject({ burst: 10_000_000 });
  });

  it('never goes out with the terms of another version', async () => {
    const { api, limiter, time, remote } = await remoteLimiterOf({ ceiling: { rate: 100, burst: 100 } }, published());
    for (let round = 1; round <= 5; round++) {
      // Left with a call to make, and nothing held and nobody waiting, when the change comes.
      api.tryAcquire(`k${round}`);
      const { version } = await limiter.policies.publish({ name: 'api', ceiling: { rate: 100, burst: 100 + round } });
      await time.advance(7);
      for (const call of remote.calls) if (call.version === version) expect(call.burst).toBe((100 + round) * 1e6);
    }
    await time.advance(1_000);
    expect(limiter.stats()[0]?.termConflicts).toBe(0);
  });

  it('that puts a cost above the burst denies it without a retry time: nobody has to catch what a publish caused', async () => {
    for (const tier of ['local', 'ceiling'] as const) {
      const { api, limiter } = await limiterOf({ [tier]: { rate: 10, burst: 10 } }, published());
      await limiter.policies.publish({ name: 'api', [tier]: { rate: 10, burst: 5 } });
      expect(api.tryAcquire('k', 8)).toBe(false);
      expect(denied(api.decide('k', 8))).toMatchObject({
        limitedBy: tier,
        reason: 'cost-above-burst',
        retryAfterMs: undefined,
      });
      expect(denied(await api.acquire('k', { cost: 8, maxWaitMs: 1e6 })).reason).toBe('cost-above-burst');
      expect(() => api.tryAcquire('k', 11)).toThrow('at most');
      // A raise makes room for more than was constructed, and lowering it again still does not throw.
      await limiter.policies.publish({ name: 'api', [tier]: { rate: 10, burst: 20 }, inheritance: 'reset' });
      expect(() => api.tryAcquire('k', 15)).not.toThrow();
      await limiter.policies.publish({ name: 'api', [tier]: { rate: 10, burst: 10 } });
      expect(denied(api.decide('k', 15)).reason).toBe('cost-above-burst');
    }
  });

  it('denies the waiters it made impossible, wherever they stand, and lets the others go on (C44)', async () => {
    const { api, limiter, time } = await limiterOf({ local: { rate: 1, burst: 10 } }, published());
    api.tryAcquire('k', 10);
    const costs = [2, 8, 1, 6, 1];
    const waits = costs.map((cost) => api.acquire('k', { cost, maxWaitMs: 60_000 }));
    await limiter.policies.publish({ name: 'api', local: { rate: 1, burst: 3 } });
    // Behind a queue, and impossible as well.
    expect(denied(api.decide('k', 5)).reason).toBe('cost-above-burst');
    const now = await Promise.all(waits.map(soFar));
    expect(now.map((outcome) => (outcome === 'pending' ? outcome : outcome.allowed))).toEqual([
      'pending',
      false,
      'pending',
      false,
      'pending',
    ]);
    await time.advance(4_000);
    expect((await Promise.all(waits.map(soFar))).every((outcome) => outcome !== 'pending')).toBe(true);
    allowed(await soFar(waits[4] as (typeof waits)[0]));
  });

  it('frees or refuses those who wait when it allows or denies everything', async () => {
    for (const mode of ['allow', 'deny'] as const) {
      const { api, limiter } = await limiterOf({ local: { rate: 1, burst: 1 } }, published());
      api.tryAcquire('k');
      const waiting = api.acquire('k', { maxWaitMs: 60_000 });
      await limiter.policies.publish({ name: 'api', local: { rate: 1, burst: 1 }, mode });
      expect(await soFar(waiting)).toMatchObject({ allowed: mode === 'allow' });
    }
  });

  it('keeps those who wait, and old references, when terms are replaced (C61)', async () => {
    const { api, limiter, time } = await limiterOf({ local: { rate: 1, burst: 1 } }, published());
    api.tryAcquire('k');
    const waits = Array.from({ length: 10 }, () => api.acquire('k', { maxWaitMs: 60_000 }));
    await limiter.policies.publish({ name: 'api', local: { rate: 100, burst: 1 } });
    await time.advance(101);
    for (const wait of waits) allowed(await soFar(wait));
    expect(limiter.policy('api')).toBe(api);
  });

  it('can take a ceiling away, and add one', async () => {
    const { api, limiter, time, remote } = await remoteLimiterOf(
      { local: { rate: 100, burst: 100 }, ceiling: { rate: 10, burst: 10 } },
      published(),
    );
    api.tryAcquire('k', 5);
    await time.advance(11);
    await limiter.policies.publish({ name: 'api', local: { rate: 100, burst: 100 } });
    expect(api.tryAcquire('k', 50)).toBe(true);
    await time.advance(30);
    // What was held has gone back to the bucket it was of.
    expect(remote.calls.at(-1)).toMatchObject({ returned: 5_000_000, unspent: 0, burst: 10_000_000 });
    const sent = remote.calls.length;
    await time.advance(3_000);
    expect(remote.calls.length).toBe(sent);
    await limiter.policies.publish({ name: 'api', local: { rate: 100, burst: 100 }, ceiling: { rate: 1, burst: 3 } });
    expect(denied(api.decide('k')).reason).toBe('cold');
    await time.advance(11);
    expect(api.tryAcquire('k')).toBe(true);
  });

  it('gives up a call for a ceiling that is gone without trying for ever', async () => {
    const { api, limiter, time, remote } = await remoteLimiterOf(
      { local: { rate: 1, burst: 1 }, ceiling: { rate: 1, burst: 1 } },
      published(),
    );
    remote.fate = 'lose-call';
    api.tryAcquire('k');
    await time.advance(50);
    await limiter.policies.publish({ name: 'api', local: { rate: 1, burst: 1 } });
    await time.advance(10_000);
    // The heartbeat, and nothing else.
    expect(time.pending).toBe(1);
    expect(limiter.stats()[0]?.keys).toBe(0);
  });

  it('overrides by key, and falls back when the override goes (C139, C136)', async () => {
    const { api, limiter } = await limiterOf(
      { local: { rate: 10, burst: 10 }, overrides: { T: { local: { rate: 50, burst: 50 } } } },
      published(),
    );
    const limits = (): number[] => ['T', 'other'].map((key) => api.decide(key).limit);
    expect(limits()).toEqual([50, 10]);
    await limiter.policies.publish({
      name: 'api',
      local: { rate: 20, burst: 20 },
      overrides: { T: { local: { rate: 50, burst: 50 } } },
    });
    expect(limits()).toEqual([50, 20]);
    await limiter.policies.publish({ name: 'api', local: { rate: 20, burst: 20 } });
    expect(limits()).toEqual([20, 20]);
  });

  it('that is only known to the store makes the limiter read its source again, once and not at each reply', async () => {
    const documents: PolicyDocument[] = [{ name: 'api', version: 1, ceiling: { rate: 100, burst: 100 } }];
    let reads = 0;
    const source = memoryPolicySource();
    const behind = {
      ...source,
      watch: () => Promise.resolve(),
      close: () => Promise.resolve(),
      publish: source.publish,
    };
    const policySource = {
      ...behind,
      list: async () => {
        reads += 1;
        return documents;
      },
    };
    const { api, limiter, time, remote } = await remoteLimiterOf(
      { version: 1, ceiling: { rate: 100, burst: 100 } },
      { policySource },
    );
    // Somebody else, who knows version 2, has been here.
    remote.inner.leaseNow({
      ...(await firstCall()),
      version: 2,
      burst: 20_000_000,
    });
    for (let i = 0; i < 40; i++) {
      void api.acquire('k', { cost: 2 });
      void api.acquire(`other${i}`);
      await time.advance(20);
    }
    expect(reads).toBe(1);
    documents[0] = { name: 'api', version: 2, ceiling: { rate: 100, burst: 20 } };
    await time.advance(1_000);
    void api.acquire('k');
    await time.advance(20);
    expect(reads).toBe(2);
    expect(api.policy.version).toBe(2);
    void api.acquire('k');
    await time.advance(2_000);
    expect(reads).toBe(2);
    expect(limiter.policies.get('api')?.version).toBe(2);

    async function firstCall() {
      void api.acquire('k');
      await time.advance(1);
      const [call] = remote.calls;
      if (!call) throw new Error('no call');
      return { ...call, holder: 'somebody', seq: 1, need: 0, head: 0, want: 0 };
    }
  });
});

describe('the mode', () => {
  it('allow allows without a look, deny denies without a retry time', async () => {
    const { api, limiter } = await limiterOf({
      ceiling: { rate: 1, burst: 1 },
      overrides: { open: { mode: 'allow' }, shut: { mode: 'deny' } },
    });
    for (let i = 0; i < 10; i++)
      expect(api.decide('open')).toMatchObject({ allowed: true, remaining: Number.POSITIVE_INFINITY });
    expect(api.decide('shut')).toMatchObject({
      allowed: false,
      limitedBy: 'policy',
      reason: 'denied-by-policy',
      retryAfterMs: undefined,
    });
    expect(limiter.stats()[0]).toMatchObject({ allowed: 10, deniedPolicy: 1, tokensSpent: 0, leaseCalls: 0 });
    expect(api.tryAcquire('else')).toBe(true);
    expect(api.tryAcquire('else')).toBe(false);
  });

  it('shadow lets everything pass, says what it would have said, and counts it', async () => {
    const { api, limiter } = await limiterOf({ mode: 'shadow', local: { rate: 1, burst: 2 } });
    expect(api.tryAcquire('k', 2)).toBe(true);
    expect(api.tryAcquire('k')).toBe(true);
    expect(api.decide('k')).toMatchObject({
      allowed: true,
      shadow: { limitedBy: 'local', reason: 'empty', retryAfterMs: 1_000 },
    });
    expect(limiter.stats()[0]).toMatchObject({ allowed: 3, shadowDenied: 2, deniedLocal: 0 });
  });

  it('shadow waits for no tokens, whatever maxWaitMs says', async () => {
    const { api } = await limiterOf({ mode: 'shadow', local: { rate: 1, burst: 1 } });
    api.tryAcquire('k');
    expect(await soFar(api.acquire('k', { maxWaitMs: 60_000 }))).toMatchObject({
      allowed: true,
      shadow: { reason: 'empty' },
    });
  });

  it('shadow leases from a bucket of its own, and a switch to enforce begins with the enforced one, empty-handed', async () => {
    const { api, limiter, time, remote } = await remoteLimiterOf(
      { mode: 'shadow', ceiling: { rate: 10, burst: 10 } },
      published(),
    );
    api.tryAcquire('k', 8);
    await time.advance(11);
    expect(remote.calls.every(({ policy, fence }) => policy === 'api~shadow' && fence === 'api~shadow')).toBe(true);
    expect(limiter.stats()[0]?.tokensHeld).toBe(8);
    await limiter.policies.publish({ name: 'api', ceiling: { rate: 10, burst: 10 } });
    expect(api.decide('k')).toMatchObject({ allowed: false, reason: 'cold', remaining: 0 });
    const waiting = api.acquire('k', { cost: 10 });
    await time.advance(30);
    allowed(await soFar(waiting));
    const enforced = remote.calls.filter(({ policy }) => policy === 'api');
    expect(enforced[0]).toMatchObject({ unspent: 0, returned: 0, fence: 'api' });
    // What was held went back to the shadow's bucket.
    expect(remote.calls.filter(({ policy }) => policy === 'api~shadow').at(-1)).toMatchObject({ returned: 8_000_000 });
    // And back again.
    await limiter.policies.publish({ name: 'api', mode: 'shadow', ceiling: { rate: 10, burst: 10 } });
    void api.acquire('k');
    await time.advance(30);
    expect(remote.calls.at(-1)?.policy).toBe('api~shadow');
  });

  it('shadow of one key leases apart from the enforced keys, under a fence nobody else can have', async () => {
    const { api, time, remote } = await remoteLimiterOf({
      ceiling: { rate: 10, burst: 10 },
      overrides: { k: { mode: 'shadow' }, 'k~shadow': { ceiling: { rate: 5, burst: 5 } } },
    });
    void api.acquire('k');
    void api.acquire('k~shadow');
    await time.advance(30);
    expect(remote.calls.slice(0, 2).map(({ policy, fence }) => [policy, fence])).toEqual([
      ['api~shadow', 'api~shadow#k'],
      ['api', 'api#k~shadow'],
    ]);
  });

  it('leaves no timer behind, however many there were, under traffic (C73)', async () => {
    const { limiter, time } = await limiterOf({ local: { rate: 100, burst: 10 } }, published());
    const traffic = async (): Promise<number> => {
      for (const name of ['api', 'other']) limiter.policy(name).tryAcquire('k');
      await time.advance(10);
      return time.pending;
    };
    await limiter.policies.publish({ name: 'other', local: { rate: 100, burst: 10 } });
    const before = await traffic();
    for (let i = 1; i <= 200; i++) {
      const name = i % 2 ? 'api' : 'other';
      await limiter.policies.publish({ name, local: { rate: 100 + i, burst: 10 + (i % 7) } });
      await traffic();
    }
    expect(await traffic()).toBe(before);
  });
});
