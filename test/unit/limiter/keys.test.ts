import { describe, expect, it } from 'vitest';
import { memoryPolicySource } from '../../../src/policy/memory-source.js';
import { allowed, limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';

describe('keys', () => {
  it('are held at most maxKeys at a time; the rest share one overflow bucket, counted and named (C64, C65)', async () => {
    const { api, limiter, time } = await limiterOf({ local: { rate: 1, per: '1h', burst: 5 } }, { maxKeys: 100 });
    while (api.tryAcquire('victim'));
    for (let i = 0; i < 99; i++) api.tryAcquire(`k${i}`);
    for (let i = 0; i < 5; i++) expect(api.tryAcquire(`new${i}`)).toBe(true);
    expect(api.decide('one more')).toMatchObject({ allowed: false, limitedBy: 'local', reason: 'overflow' });
    expect(api.decide('victim')).toMatchObject({ allowed: false, reason: 'empty' });
    expect(limiter.stats()[0]).toMatchObject({ keys: 100, overflow: 6 });
    await time.advance(5 * 3_600_000);
    expect(limiter.stats()[0]?.keys).toBe(0);
    expect(api.decide('one more')).toMatchObject({ allowed: true });
  });

  it('that are full again make room for new ones at once', async () => {
    const { api, limiter, time } = await limiterOf({ local: { rate: 10, burst: 1 } }, { maxKeys: 10 });
    for (let i = 0; i < 10; i++) api.tryAcquire(`k${i}`);
    time.stall(200);
    for (let i = 0; i < 10; i++) expect(api.tryAcquire(`new${i}`)).toBe(true);
    expect(limiter.stats()[0]).toMatchObject({ keys: 10, overflow: 0 });
  });

  it('with an override keep their own terms though there is no room', async () => {
    const { api } = await limiterOf(
      {
        local: { rate: 1, per: '1h', burst: 5 },
        overrides: { blocked: { mode: 'deny' }, vip: { local: { rate: 1, burst: 50 } } },
      },
      { maxKeys: 1 },
    );
    api.tryAcquire('k');
    expect(api.decide('blocked')).toMatchObject({ allowed: false, limitedBy: 'policy', reason: 'denied-by-policy' });
    expect(api.decide('vip', 50)).toMatchObject({ allowed: true });
  });

  it('leave memory when idle, whatever was asked of them, and no timer stays (C64)', async () => {
    const tiers = [
      { local: { rate: 10, burst: 10 } },
      { ceiling: { rate: 10, burst: 10 } },
      { local: { rate: 10, burst: 10 }, ceiling: { rate: 5, burst: 5 } },
    ];
    for (const policy of tiers) {
      const { api, limiter, time } = await limiterOf(policy);
      for (let key = 0; key < 50; key++) {
        for (let i = 0; i <= key % 12; i++) api.tryAcquire(`k${key}`);
        api.decide(`k${key}`, 5);
      }
      void api.acquire('k3', { maxWaitMs: 2_000, cost: 5 });
      expect(limiter.stats()[0]?.keys).toBe(50);
      await time.advance(10_000);
      expect(limiter.stats()[0]).toMatchObject({ keys: 0, tokensHeld: 0, waiting: 0 });
      expect(time.pending).toBe(0);
    }
  });

  it('that rest are numbers alone, which say the same', async () => {
    const tier = { rate: 1, per: '1h' as const, burst: 9 };
    const { api, time } = await limiterOf({ local: tier, overrides: { named: { local: tier } } });
    const states = () => Array.from(api.keys.states(), ({ key }) => key);
    for (let i = 0; i < 3; i++) api.tryAcquire('asked');
    expect(states()).toEqual([]);
    const { remaining } = api.decide('asked');
    api.tryAcquire('named');
    expect([remaining, states()]).toEqual([5, ['named']]);
    await time.advance(2_000);
    // Terms of its own are more than its numbers say.
    expect(states()).toEqual(['named']);
    expect(api.decide('asked').remaining).toBe(4);
  });

  it('that rest come under newer terms with what they held, and no older terms are kept', async () => {
    const policySource = memoryPolicySource([{ name: 'api', local: { rate: 1, per: '1h', burst: 10 } }]);
    const { limiter, api, time } = await limiterOf({}, { policies: [], policySource });
    for (let i = 0; i < 4; i++) api.tryAcquire('k');
    const publish = (burst: number) =>
      limiter.policies.publish({ name: 'api', inheritance: 'proportional', local: { rate: 1, per: '1h', burst } });
    await publish(20);
    expect(api.decide('k', 12)).toMatchObject({ allowed: true, remaining: 0 });
    await time.advance(2_000);
    for (let burst = 30; burst < 40; burst++) await publish(burst);
    expect(api.teller.owner.ofEdition(2)).toBeDefined();
    await time.advance(4_000);
    for (let edition = 1; edition < 12; edition++) expect(api.teller.owner.ofEdition(edition)).toBeUndefined();
  });

  it('are looked through a thousand at a time, whatever their number (C68)', async () => {
    const { api, limiter, time } = await limiterOf({ local: { rate: 1_000, burst: 1 } }, { maxKeys: 20_000 });
    for (let key = 0; key < 10_000; key++) api.tryAcquire(`k${key}`);
    let most = 0;
    for (let keys = 10_000; keys > 0; ) {
      await time.advance(1);
      const left = limiter.stats()[0]?.keys ?? 0;
      most = Math.max(most, keys - left);
      keys = left;
      expect(time.now()).toBeLessThan(10_000);
    }
    expect(most).toBeLessThanOrEqual(1_024);
  });

  it('give their lease back when idle: nothing is stranded, and what is granted is accounted for (INV5)', async () => {
    const { api, limiter, time, remote } = await remoteLimiterOf({ ceiling: { rate: 10, burst: 100 } });
    api.tryAcquire('k', 60);
    await time.advance(11);
    expect(api.tryAcquire('k', 20)).toBe(true);
    expect(limiter.stats()[0]?.tokensHeld).toBe(40);
    await time.advance(5_000);
    const [stats] = limiter.stats();
    expect(stats).toMatchObject({ keys: 0, tokensHeld: 0 });
    expect(stats?.tokensGranted).toBe(
      (stats?.tokensSpent ?? 0) + (stats?.tokensReturned ?? 0) + (stats?.tokensExpired ?? 0),
    );
    expect(stats?.tokensReturned).toBeGreaterThanOrEqual(40);
    const all = api.acquire('k', { cost: 100 });
    await time.advance(30);
    allowed(await soFar(all));
    expect(remote.calls.length).toBeLessThan(8);
  });

  it('of one policy are not swept by the terms of another (C67)', async () => {
    const { limiter, time } = await limiterOf(
      {},
      {
        policies: [
          { name: 'api', local: { rate: 5, per: '1d', burst: 5 } },
          { name: 'minute', local: { rate: 100, per: '1m', burst: 100 } },
        ],
      },
    );
    while (limiter.policy('api').tryAcquire('K'));
    for (let i = 0; i < 300; i++) {
      limiter.policy('minute').tryAcquire('K');
      await time.advance(1_000);
    }
    expect(limiter.policy('api').tryAcquire('K')).toBe(false);
  });

  it('do not pin the context of the request that first used them (C71)', async () => {
    const { api, time } = await limiterOf({
      local: { rate: 1, per: '5m', burst: 10 },
      ceiling: { rate: 100, burst: 100 },
    });
    for (let i = 0; i < 500; i++) api.tryAcquire(`k${i}`);
    // One timer for all of them, and one for the tick: not one a hit.
    expect(time.pending).toBeLessThanOrEqual(3);
  });

  it('that differ are different buckets, whatever bytes they have (C125, C131)', async () => {
    const { api } = await limiterOf({ ceiling: { rate: 1, burst: 1 } });
    const keys = [
      'a\u0000b',
      'a',
      'b',
      'a:b',
      'a:b:',
      '{a}b',
      '__proto__',
      'e\u0301',
      '\u00e9',
      '\r\n',
      '😀',
      'toString',
    ];
    for (const key of keys) expect(api.tryAcquire(key)).toBe(true);
    for (const key of keys) expect(api.tryAcquire(key)).toBe(false);
  });
});
