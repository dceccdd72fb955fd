import { describe, expect, it } from 'vitest';
import { createLimiter, memoryPolicySource, type PolicyDocument, type TierDocument } from '../../../src/index.js';
import { ManualTime, MemoryCeiling, storeClock } from '../../../src/testing.js';
import { Chance } from '../../support/fleet/chance.js';

const MINUTE = 60_000;

/** Limiters of one fleet, in one process, on one clock. */
async function fleet(size: number, ceiling: TierDocument, more: Partial<PolicyDocument> = {}) {
  const time = new ManualTime();
  const store = new MemoryCeiling({ clock: storeClock(time) });
  const policies = [{ name: 'api', ceiling, ...more }];
  const limiters = await Promise.all(
    Array.from({ length: size }, () => createLimiter({ policies, ceiling: store, time, telemetry: false })),
  );
  const apis = limiters.map((limiter) => limiter.policy('api'));
  return { time, apis, close: () => Promise.all(limiters.map((limiter) => limiter.close())) };
}

/** Moves to the moment `ms` after the start of a minute. */
async function toMinute(time: ManualTime, ms: number): Promise<void> {
  await time.advance(MINUTE - (time.wallNow() % MINUTE) + ms);
}

describe('a ceiling of windows', () => {
  it('of 60 a minute lets 120 pass within a second, around the moment between two windows', async () => {
    const { time, apis, close } = await fleet(1, { algorithm: 'fixed-window', limit: 60, window: '1m' });
    await toMinute(time, MINUTE - 600);
    let before = 0;
    for (let i = 0; i < 100; i++) before += Number(apis[0]?.tryAcquire('k'));
    await time.advance(601);
    let after = 0;
    for (let i = 0; i < 100; i++) after += Number(apis[0]?.tryAcquire('k'));
    expect([before, after]).toEqual([60, 60]);
    await close();
  });

  it('as a log does not, and as a counter lets pass what is left of the window before', async () => {
    for (const [algorithm, most] of [
      ['sliding-window-log', 0],
      ['sliding-window-counter', 1],
    ] as const) {
      const { time, apis, close } = await fleet(1, { algorithm, limit: 60, window: '1m' });
      await toMinute(time, MINUTE - 600);
      let before = 0;
      for (let i = 0; i < 100; i++) before += Number(apis[0]?.tryAcquire('k'));
      await time.advance(601);
      let after = 0;
      for (let i = 0; i < 100; i++) after += Number(apis[0]?.tryAcquire('k'));
      expect([algorithm, before, after <= most]).toEqual([algorithm, 60, true]);
      await close();
    }
  });

  it.each(['fixed-window', 'sliding-window-log', 'sliding-window-counter'] as const)(
    'of 300 a minute lets six instances of 100 a minute have 300 together (%s)',
    async (algorithm) => {
      const local = { rate: 100, burst: 100, per: '1m' } as const;
      const { time, apis, close } = await fleet(6, { algorithm, limit: 300, window: '1m' }, { local });
      await toMinute(time, 1_000);
      const allowed = apis.map(() => 0);
      for (let turn = 0; turn < 100; turn++) {
        for (const [i, api] of apis.entries()) allowed[i] = (allowed[i] ?? 0) + Number(api.tryAcquire('k'));
        await time.advance(100);
      }
      const total = allowed.reduce((sum, each) => sum + each, 0);
      expect(total).toBeLessThanOrEqual(300);
      expect(total).toBeGreaterThanOrEqual(297);
      expect(Math.max(...allowed)).toBeLessThanOrEqual(110);
      await close();
    },
  );

  it('says when the window turns, and wakes who waits for it then', async () => {
    const { time, apis, close } = await fleet(2, { algorithm: 'fixed-window', limit: 5, window: '1m' });
    const [one, other] = apis;
    await toMinute(time, 20_000);
    for (let i = 0; i < 5; i++) expect(one?.tryAcquire('k')).toBe(true);
    const denied = other?.decide('k');
    expect(denied?.allowed === false && denied.retryAfterMs).toBe(40_000);
    const waiting = other?.acquire('k', { maxWaitMs: MINUTE });
    let allowed = false;
    void waiting?.then((decision) => {
      allowed = decision.allowed;
    });
    await time.advance(39_990);
    expect(allowed).toBe(false);
    await time.advance(300);
    expect(allowed).toBe(true);
    await close();
  });

  it('of the calendar begins when the day does in its time zone', async () => {
    const ceiling = { algorithm: 'fixed-window', limit: 3, window: 'day', timeZone: 'Asia/Kolkata' } as const;
    const { time, apis, close } = await fleet(1, ceiling);
    const midnight = Math.ceil((time.wallNow() + 5.5 * 3_600_000) / 86_400_000) * 86_400_000 - 5.5 * 3_600_000;
    await time.advance(midnight - time.wallNow() - 1_000);
    for (let i = 0; i < 3; i++) expect(apis[0]?.tryAcquire('k')).toBe(true);
    const denied = apis[0]?.decide('k');
    expect(denied?.allowed === false && denied.retryAfterMs).toBe(1_000);
    await time.advance(1_001);
    // The first call after midnight may still say which day it was.
    expect((await apis[0]?.acquire('k', { maxWaitMs: 100 }))?.allowed).toBe(true);
    await close();
  });

  it('is another ledger than that of the algorithm before: old and new law together, across the change', async () => {
    const time = new ManualTime();
    const ceiling = new MemoryCeiling({ clock: storeClock(time) });
    const policySource = memoryPolicySource([{ name: 'api', version: 1, ceiling: { rate: 1, burst: 10 } }]);
    const limiter = await createLimiter({ time, ceiling, policySource, telemetry: false });
    const api = limiter.policy('api');
    const all = () => {
      let passed = 0;
      while (passed < 100 && api.tryAcquire('k')) passed += 1;
      return passed;
    };
    expect(all()).toBe(10);
    await limiter.policies.publish({ name: 'api', ceiling: { algorithm: 'fixed-window', limit: 7, window: '1h' } });
    expect(all()).toBe(7);
    await time.advance(5_000);
    expect(all()).toBe(0);
    await limiter.policies.publish({ name: 'api', ceiling: { algorithm: 'fixed-window', limit: 9, window: '1h' } });
    expect(all()).toBe(2);
    await limiter.policies.publish({ name: 'api', ceiling: { algorithm: 'fixed-window', limit: 4, window: '1h' } });
    await time.advance(3_600_000);
    expect(all()).toBe(4);
    const closing = limiter.close();
    await time.advance(1);
    await closing;
  });

  it('as a counter is within a few per cent of the log where calls come at random', async () => {
    const LIMIT = 100;
    const chance = new Chance(11);
    const log = await fleet(1, { algorithm: 'sliding-window-log', limit: LIMIT, window: 1_000 });
    const counter = await fleet(1, { algorithm: 'sliding-window-counter', limit: LIMIT, window: 1_000 });
    const admitted = { log: 0, counter: 0 };
    const recent: number[] = [];
    let [first, worst, differing, calls] = [0, 0, 0, 0];
    for (let at = 0; at < 60_000; ) {
      const gap = Math.ceil((-Math.log(1 - chance.next()) * 1_000) / (1.1 * LIMIT));
      at += gap;
      await Promise.all([log.time.advance(gap), counter.time.advance(gap)]);
      const byLog = log.apis[0]?.tryAcquire('k') === true;
      const byCounter = counter.apis[0]?.tryAcquire('k') === true;
      calls += 1;
      if (byLog !== byCounter) differing += 1;
      if (byLog) admitted.log += 1;
      if (!byCounter) continue;
      admitted.counter += 1;
      recent.push(at);
      while ((recent[first] as number) <= at - 1_000) first += 1;
      worst = Math.max(worst, recent.length - first);
    }
    expect(worst).toBeLessThanOrEqual(1.15 * LIMIT);
    expect(Math.abs(admitted.counter / admitted.log - 1)).toBeLessThan(0.03);
    console.info(
      `worst window ${worst}, admitted ${admitted.counter} of ${admitted.log}, ${differing} of ${calls} differ`,
    );
    await log.close();
    await counter.close();
  });
});
