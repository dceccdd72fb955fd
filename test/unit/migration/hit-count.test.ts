import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Decision, type DenialReason, type PolicyDocument, peek } from '../../../src/index.js';
import { countSoFar, failureOf, hitCountOf } from '../../../src/migration/hit-count.js';
import { limiterOf, remoteLimiterOf } from '../../support/limiter-under-test.js';

const FIVE_A_MINUTE: PolicyDocument = { name: 'api', local: { rate: 5, per: '1m', burst: 5 } };

describe('a decision as a count of hits', () => {
  it('counts up to the limit, and one beyond it for as long as it denies', async () => {
    const { api, time } = await limiterOf(FIVE_A_MINUTE);
    const ask = () => hitCountOf(api.decide('a'), api.policy, 'a', 5);

    expect(ask()).toEqual({ hits: 1, resetAfterMs: 12_000 });
    expect(ask()).toEqual({ hits: 2, resetAfterMs: 24_000 });
    expect([ask(), ask(), ask()].map(({ hits }) => hits)).toEqual([3, 4, 5]);
    // A bucket has one more every twelve seconds: that is when to come back, not when a window ends.
    expect(ask()).toEqual({ hits: 6, resetAfterMs: 12_000 });
    expect(ask()).toEqual({ hits: 6, resetAfterMs: 12_000 });
    await time.advance(12_000);
    expect(ask()).toEqual({ hits: 5, resetAfterMs: 60_000 });
  });

  it('agrees with the decision under every limit of the middleware, and never promises more than remains', async () => {
    const { api } = await limiterOf(FIVE_A_MINUTE);
    const decisions = fc.record({
      allowed: fc.boolean(),
      remaining: fc.oneof(fc.nat(200), fc.constant(Number.POSITIVE_INFINITY)),
      limit: fc.integer({ min: 1, max: 200 }),
      resetAfterMs: fc.constant(0),
    });
    const limits = fc.double({ min: 1, max: 200, noNaN: true });
    fc.assert(
      fc.property(decisions, limits, (decision, limit) => {
        const { hits } = hitCountOf(decision as Decision, api.policy, 'a', limit);
        expect(Number.isSafeInteger(hits) && hits >= 1).toBe(true);
        expect(hits <= limit).toBe(decision.allowed);
        if (decision.allowed) expect(limit - hits).toBeLessThan(decision.remaining + 1);
      }),
    );
  });

  it('tells how many there have been, without one more', async () => {
    const { api } = await limiterOf(FIVE_A_MINUTE);
    const look = () => countSoFar(peek(api, 'a'), api.policy, 'a', 5);

    expect(look()).toEqual({ hits: 0, resetAfterMs: 0 });
    api.decide('a');
    api.decide('a');
    expect(look()).toEqual({ hits: 2, resetAfterMs: 24_000 });
    for (let i = 0; i < 5; i += 1) api.decide('a');
    expect(look()).toEqual({ hits: 5, resetAfterMs: 60_000 });
  });

  it('counts nothing under the mode `allow`, and beyond every limit under `deny`', async () => {
    const { api: allowing } = await limiterOf({ ...FIVE_A_MINUTE, mode: 'allow' });
    expect(hitCountOf(allowing.decide('a'), allowing.policy, 'a', 5)).toEqual({ hits: 1, resetAfterMs: 0 });
    const { api: denying } = await limiterOf({ ...FIVE_A_MINUTE, mode: 'deny' });
    const never = { hits: Number.MAX_SAFE_INTEGER, resetAfterMs: undefined };
    expect(hitCountOf(denying.decide('a'), denying.policy, 'a')).toEqual(never);
  });

  it('of a ceiling elsewhere, says how long a bucket takes to fill that holds no more than is in hand', async () => {
    const { api, time } = await remoteLimiterOf({
      ceiling: { rate: 1, burst: 10 },
      overrides: { vip: { ceiling: { rate: 2, burst: 10 } } },
    });
    for (const [key, msForOne] of [
      ['a', 1_000],
      ['vip', 500],
    ] as const) {
      const asked = api.acquire(key);
      await time.advance(10);
      const decision = await asked;
      expect(decision).toMatchObject({ allowed: true, resetAfterMs: undefined });
      const used = 10 - decision.remaining;
      expect(hitCountOf(decision, api.policy, key, 10)).toEqual({ hits: used, resetAfterMs: used * msForOne });
    }
  });
});

it.each([
  { tier: { algorithm: 'fixed-window', limit: 10, window: '1m' }, atMost: 60_000 },
  { tier: { algorithm: 'fixed-window', limit: 10, window: 'day' }, atMost: 1.05 * 86_400_000 },
  { tier: { algorithm: 'sliding-window-log', limit: 10, window: '1m' }, atMost: 60_000 },
  { tier: { algorithm: 'sliding-window-counter', limit: 10, window: '1m' }, atMost: 120_000 },
] as const)(
  'a window of $tier.algorithm, $tier.window, gives back all at once, however little was taken',
  async (row) => {
    const { api, time } = await remoteLimiterOf({ ceiling: row.tier });
    const asked = api.acquire('a');
    await time.advance(10);
    const decision = { ...(await asked), remaining: 9 };
    expect(hitCountOf(decision, api.policy, 'a', 10)).toEqual({ hits: 1, resetAfterMs: row.atMost });
    expect(hitCountOf({ ...decision, remaining: 10 }, api.policy, 'a', 10).resetAfterMs).toBe(0);
  },
);

describe('a store that fails', () => {
  it('is one that did not answer, with a status of 503; every other denial is a count', () => {
    const denied = (reason: DenialReason) => ({ allowed: false, policy: 'api', reason }) as Decision;
    for (const reason of ['cold', 'expired', 'degraded', 'closed'] as const) {
      expect(failureOf(denied(reason))).toMatchObject({ code: 'HEADGATE_CEILING', statusCode: 503 });
    }
    // Clients can bring `overflow` about: as a failure that the middleware lets pass it would be a way round the limit.
    for (const reason of ['empty', 'overflow', 'cost-above-burst', 'denied-by-policy'] as const) {
      expect(failureOf(denied(reason))).toBeUndefined();
    }
    expect(failureOf({ allowed: true } as Decision)).toBeUndefined();
  });
});
