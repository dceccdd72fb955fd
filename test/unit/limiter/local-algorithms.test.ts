import { describe, expect, it } from 'vitest';
import type { TierDocument } from '../../../src/policy/policy.js';
import { ManualTime, memoryPolicySource } from '../../../src/testing.js';
import { peek, penalise, refund, upTo } from '../../../src/verb/one-limit.js';
import { allowed, denied, limiterOf, soFar } from '../../support/limiter-under-test.js';

const WINDOWS: readonly [string, TierDocument][] = [
  ['fixed window', { algorithm: 'fixed-window', limit: 10, window: '1s' }],
  ['fixed window from first use', { algorithm: 'fixed-window', limit: 10, window: '1s', align: 'first-use' }],
  ['sliding window log', { algorithm: 'sliding-window-log', limit: 10, window: '1s' }],
  ['sliding window counter', { algorithm: 'sliding-window-counter', limit: 10, window: '1s' }],
];
/** Both clocks at the beginning of a second. */
const clock = () => new ManualTime(5_000, 1_700_000_000_000);

describe.each(WINDOWS)('a local %s', (_, local) => {
  it('admits its limit in one instant and no more, and says until when', async () => {
    const { api, time } = await limiterOf({ local }, { time: clock() });
    let passed = 0;
    for (let i = 0; i < 400; i++) if (api.tryAcquire('k')) passed += 1;
    expect(passed).toBe(10);
    const { retryAfterMs = 0, ...refused } = denied(api.decide('k'));
    expect(refused).toMatchObject({ limitedBy: 'local', reason: 'empty', limit: 10, remaining: 0 });
    await time.advance(retryAfterMs - 1);
    expect(api.tryAcquire('k')).toBe(false);
    await time.advance(1);
    expect(api.tryAcquire('k')).toBe(true);
    expect(api.tryAcquire('another', 10)).toBe(true);
  });

  it('serves who waits in turn, each as soon as there is room', async () => {
    const { api, time } = await limiterOf({ local }, { time: clock() });
    api.tryAcquire('k', 10);
    const waits = [api.acquire('k', { cost: 10, maxWaitMs: 5_000 }), api.acquire('k', { cost: 1, maxWaitMs: 5_000 })];
    await time.advance(4_000);
    for (const wait of waits) expect(allowed(await soFar(wait)).allowed).toBe(true);
    expect(denied(await soFar(api.acquire('q', { cost: 10, maxWaitMs: 0 }).then(() => api.decide('q')))).allowed).toBe(
      false,
    );
  });

  it('takes refunds and penalties, and gives a part', async () => {
    const { api } = await limiterOf({ local }, { time: clock() });
    expect(upTo(api, 'k', 25)).toMatchObject({ granted: 10 });
    refund(api, 'k', 4);
    expect(peek(api, 'k').remaining).toBe(4);
    penalise(api, 'k', 100);
    expect(peek(api, 'k').remaining).toBe(0);
    for (let i = 0; i < 10; i++) refund(api, 'k', 10);
    expect(peek(api, 'k').remaining).toBe(10);
  });

  it('forgets keys that are as if they had never been used, and no others', async () => {
    const { api, time, limiter } = await limiterOf({ local }, { time: clock() });
    for (let i = 0; i < 50; i++) api.tryAcquire(`k${i}`, 10);
    await time.advance(400);
    for (let i = 0; i < 50; i++) expect(api.tryAcquire(`k${i}`)).toBe(false);
    await time.advance(120_000);
    expect(limiter.stats()[0]?.keys).toBe(0);
  });

  it('keeps what was used when its limit changes', async () => {
    const policySource = memoryPolicySource();
    const { api, limiter } = await limiterOf({ local }, { time: clock(), policySource });
    api.tryAcquire('k', 8);
    await limiter.policies.publish({ name: 'api', local: { ...local, limit: 20 } as TierDocument });
    expect(api.decide('k', 12)).toMatchObject({ allowed: true, limit: 20 });
    expect(api.tryAcquire('k')).toBe(false);
    // Another algorithm counts other things, and begins anew.
    await limiter.policies.publish({ name: 'api', local: { rate: 1, burst: 3 } });
    expect(api.decide('k', 3).limit).toBe(3);
  });
});

it('sixty a minute as a fixed window are 120 around the boundary of a minute: its flaw', async () => {
  const time = new ManualTime(0, Date.parse('2026-11-30T12:00:59.999Z'));
  const { api } = await limiterOf({ local: { algorithm: 'fixed-window', limit: 60, window: '1m' } }, { time });
  expect(upTo(api, 'k', 100).granted).toBe(60);
  await time.advance(1);
  expect(upTo(api, 'k', 100).granted).toBe(60);
});

it('a daily quota is there again at midnight of its zone', async () => {
  const time = new ManualTime(0, Date.parse('2026-10-25T11:00:00Z'));
  const local: TierDocument = { algorithm: 'fixed-window', limit: 5, window: 'day', timeZone: 'Europe/Berlin' };
  const { api } = await limiterOf({ local }, { time });
  api.tryAcquire('k', 5);
  expect(denied(api.decide('k')).retryAfterMs).toBe(12 * 3_600_000);
});

describe('a local leaky bucket', () => {
  const local: TierDocument = { algorithm: 'leaky-bucket', rate: 10, queue: 5 };

  it('lets requests leave evenly, as many wait as its queue holds, and the rest are denied at once', async () => {
    const { api, time } = await limiterOf({ local });
    const left: number[] = [];
    const refused: string[] = [];
    for (let i = 0; i < 8; i++) {
      void api.acquire('k').then((decision) => {
        if (decision.allowed) left.push(time.now() - 1_000);
        else refused.push(decision.reason);
      });
    }
    await time.advance(1_000);
    expect(left).toEqual([0, 100, 200, 300, 400, 500]);
    expect(refused).toEqual(['queue-full', 'queue-full']);
    // Time in which nobody came is lost: no burst.
    await time.advance(10_000);
    expect([api.tryAcquire('k'), api.tryAcquire('k')]).toEqual([true, false]);
    expect(denied(api.decide('k')).retryAfterMs).toBe(100);
  });

  it('keeps the next one back by what the last one cost, and its queue holds that many tokens’ worth', async () => {
    const { api, time } = await limiterOf({ local });
    const left: [number, number][] = [];
    for (const cost of [3, 2, 3])
      void api.acquire('k', { cost }).then(({ allowed }) => allowed && left.push([cost, time.now() - 1_000]));
    expect(denied(await soFar(api.acquire('k', { cost: 1 }))).reason).toBe('queue-full');
    await time.advance(1_000);
    expect(left).toEqual([
      [3, 0],
      [2, 300],
      [3, 500],
    ]);
  });

  it('keeps its rate above a thousand a second, where timers are coarser than its steps (C05)', async () => {
    const { api, time } = await limiterOf({ local: { algorithm: 'leaky-bucket', rate: 3_000, queue: 10_000 } });
    let left = 0;
    for (let i = 0; i < 3_000; i++) void api.acquire('k').then(() => (left += 1));
    await time.advance(500);
    expect(left).toBeGreaterThanOrEqual(1_490);
    expect(left).toBeLessThanOrEqual(1_501);
  });
});
