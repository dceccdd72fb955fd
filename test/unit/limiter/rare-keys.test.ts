import { describe, expect, it } from 'vitest';
import { MICRO } from '../../../src/units.js';
import { Chance } from '../../support/fleet/chance.js';
import { remoteLimiterOf } from '../../support/limiter-under-test.js';

const TRIP_MS = 2;

/** Asks for one key at random moments, `perSecond` on average; answers the calls to the store for a decision. */
async function callsADecision(perSecond: number, ceiling: { rate: number; burst: number }, durationMs: number) {
  const { api, time, remote } = await remoteLimiterOf({ ceiling, lease: { durationMs } });
  remote.delayMs = TRIP_MS / 2;
  const chance = new Chance(3);
  const decisions = 400;
  let waited = 0;
  for (let i = 0; i < decisions; i++) {
    await time.advance((-Math.log(1 - chance.next()) * 1_000) / perSecond);
    const before = time.now();
    let after = Number.POSITIVE_INFINITY;
    const decision = api.acquire('k').then(() => {
      after = time.now();
    });
    await time.advance(2 * TRIP_MS);
    await decision;
    if (after > before) waited += 1;
  }
  return { calls: remote.calls.length / decisions, waited: waited / decisions };
}

describe('a key that is rarely asked for', () => {
  it.each([
    [20, 2_000, 0.07, 0.02],
    [5, 2_000, 0.25, 0.05],
    [1, 2_000, 0.8, 0.5],
    [1, 10_000, 0.3, 0.05],
  ])('%d times a second, leased for %d ms, costs at most %d calls a decision', async (rate, lease, calls, waited) => {
    const seen = await callsADecision(rate, { rate: 100, burst: 100 }, lease);
    expect(seen.calls).toBeLessThanOrEqual(calls);
    expect(seen.waited).toBeLessThanOrEqual(waited);
  });

  it.each([
    [3, 10_000, 0.05],
    [10, 2_000, 0.07],
  ])(
    '%d times a second where there is plenty, leased for %d ms, costs hardly more than a call a lease',
    async (rate, lease, calls) => {
      const seen = await callsADecision(rate, { rate: 1_000, burst: 1_000 }, lease);
      expect(seen.calls).toBeLessThanOrEqual(calls);
      expect(seen.waited).toBeLessThanOrEqual(0.02);
    },
  );

  it('costs one call where it is asked for once, and holds nothing', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 100, burst: 100 } });
    void api.acquire('once');
    await time.advance(20_000);
    expect(remote.calls).toHaveLength(1);
    expect(remote.calls[0]).toMatchObject({ need: MICRO, want: 0 });
  });

  it('lets what it holds lapse, for no call at all, where there is plenty', async () => {
    const { api, time, remote, limiter } = await remoteLimiterOf({ ceiling: { rate: 1_000, burst: 20_000 } });
    await time.advance(5_000);
    for (let i = 0; i < 2; i++) {
      void api.acquire('k');
      await time.advance(800);
    }
    expect(limiter.stats()[0]?.tokensHeld).toBeGreaterThan(0);
    const before = remote.calls.length;
    await time.advance(5_000);
    expect(limiter.stats()[0]?.tokensHeld).toBe(0);
    expect(remote.calls).toHaveLength(before);
    expect(limiter.stats()[0]?.tokensExpired).toBeGreaterThan(0);
  });

  it('gives back what it holds where others ask for most of the ceiling', async () => {
    const ceiling = { rate: 100, burst: 100 };
    const { api, time, remote, limiter } = await remoteLimiterOf({ ceiling });
    const other = await remoteLimiterOf({ ceiling }, { time, remote });
    const pass = async (ms: number) => {
      for (let i = 0; i < ms / 20; i++) {
        void other.api.acquire('k');
        await time.advance(20);
      }
    };
    await pass(5_000);
    for (let i = 0; i < 6; i++) {
      void api.acquire('k');
      await pass(200);
    }
    expect(limiter.stats()[0]?.tokensHeld).toBeGreaterThan(0);
    await pass(3_000);
    expect(limiter.stats()[0]).toMatchObject({ tokensHeld: 0, tokensExpired: 0 });
  });
});
