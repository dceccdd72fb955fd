import { describe, expect, it } from 'vitest';
import { MemoryCeiling, storeClock } from '../../../src/ceiling/memory-ceiling.js';
import { ManualTime } from '../../../src/testing.js';
import { allowed, denied, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';
import { RemoteCeiling } from '../../support/remote-ceiling.js';

const ceiling = { rate: 100, burst: 100 };

/** Asks every `stepMs` for `ms`, and counts what passes. */
async function offer(api: { tryAcquire(key: string): boolean }, time: ManualTime, ms: number, stepMs = 1) {
  let admitted = 0;
  for (let at = 0; at < ms; at += stepMs) {
    await time.advance(stepMs);
    if (api.tryAcquire('k')) admitted += 1;
  }
  return admitted;
}

describe('in an outage', () => {
  it('the mode deny admits what is in hand and then nothing (C160)', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling });
    api.tryAcquire('k', 40);
    await time.advance(11);
    remote.fate = 'lose-call';
    let admitted = 0;
    while (api.tryAcquire('k')) admitted += 1;
    expect(admitted).toBe(40);
    expect(await offer(api, time, 3_000)).toBe(0);
  });

  it('the mode allow admits everything, and counts it apart (C89, C178)', async () => {
    const { api, time, remote, limiter } = await remoteLimiterOf({ ceiling, outage: { mode: 'allow' } });
    remote.ready = false;
    api.tryAcquire('k');
    await time.advance(10);
    for (let i = 0; i < 100; i++) expect(api.decide('k')).toMatchObject({ allowed: true, degraded: true });
    expect(limiter.stats()[0]).toMatchObject({
      allowed: 100,
      allowedDegraded: 100,
      tokensUnleased: 100,
      tokensSpent: 0,
    });
  });

  it('the local tier goes on deciding', async () => {
    const { api, time, remote } = await remoteLimiterOf({
      local: { rate: 1, burst: 3 },
      ceiling,
      outage: { mode: 'allow' },
    });
    remote.ready = false;
    api.tryAcquire('k');
    await time.advance(1);
    expect([1, 2, 3, 4].map(() => api.tryAcquire('k'))).toEqual([true, true, true, false]);
  });

  it('the mode share admits R/N̂, a cost at a time, from the end of the last lease on', async () => {
    const { api, time, remote } = await remoteLimiterOf({
      ceiling,
      outage: { mode: 'share' },
      lease: { durationMs: 1_000 },
    });
    remote.fleet = 10;
    // Long enough for a heartbeat to have told the size of the fleet.
    await time.advance(6_000);
    api.tryAcquire('k', 20);
    await time.advance(11);
    const leasedAt = time.now() - 11;
    remote.ready = false;
    let held = 0;
    while (api.tryAcquire('k')) held += 1;
    expect(held).toBe(20);
    const beforeTheEnd = await offer(api, time, leasedAt + 990 - time.now());
    expect(beforeTheEnd).toBe(0);
    // 100/s over ten instances: one every 100 ms, the first of them 100 ms after the lease's end.
    expect(await offer(api, time, 99)).toBe(0);
    expect(await offer(api, time, 10_000)).toBe(100);
  });

  it('the mode share waits for the end of the last lease, and says for how long', async () => {
    const { api, time, remote } = await remoteLimiterOf({
      ceiling,
      outage: { mode: 'share' },
      lease: { durationMs: 1_000 },
    });
    remote.fleet = 10;
    await time.advance(6_000);
    api.tryAcquire('k', 20);
    await time.advance(11);
    const leaseEndsAt = time.now() - 11 + 990;
    remote.ready = false;
    while (api.tryAcquire('k'));
    await time.advance(1);
    api.tryAcquire('k');
    const refused = api.decide('k');
    expect(refused).toMatchObject({ allowed: false, retryAfterMs: leaseEndsAt + 100 - time.now() });
    await time.advance(leaseEndsAt + 99 - time.now());
    expect(api.tryAcquire('k')).toBe(false);
    await time.advance(1);
    expect(api.tryAcquire('k')).toBe(true);
  });

  it('the mode share starts when the store was lost, where the last lease had ended long before', async () => {
    const { api, time, remote } = await remoteLimiterOf({
      ceiling,
      outage: { mode: 'share' },
      lease: { durationMs: 1_000 },
    });
    remote.fleet = 10;
    await time.advance(6_000);
    api.tryAcquire('k', 20);
    await time.advance(11);
    while (api.tryAcquire('k'));
    await time.advance(5_000);
    remote.ready = false;
    expect(await offer(api, time, 99)).toBe(0);
    expect(await offer(api, time, 1_000)).toBeGreaterThan(0);
  });

  it('the mode share lets nobody save up more than one cost', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling, outage: { mode: 'share', fleet: 10 } });
    remote.ready = false;
    api.tryAcquire('k');
    await time.advance(60_000);
    expect(api.tryAcquire('k')).toBe(true);
    expect(denied(api.decide('k'))).toMatchObject({ reason: 'degraded', retryAfterMs: 100 });
    await time.advance(99);
    expect(api.tryAcquire('k')).toBe(false);
    await time.advance(1);
    expect(api.tryAcquire('k')).toBe(true);
  });

  it('the mode share starts empty in each outage anew', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling, outage: { mode: 'share', fleet: 100 } });
    for (let outage = 0; outage < 3; outage++) {
      remote.ready = false;
      api.tryAcquire('k');
      await time.advance(1_500);
      while (api.tryAcquire('k'));
      remote.ready = true;
      // In use, and never dry, until the next one.
      for (let i = 0; i < 100; i++) {
        void api.acquire('k', { maxWaitMs: 1_000 });
        await time.advance(50);
      }
      expect(api.tryAcquire('k') || !remote.ready).toBe(true);
      remote.ready = false;
      await time.advance(2_500);
      while (api.tryAcquire('k')) if (api.decide('k').degraded) break;
      expect(api.tryAcquire('k')).toBe(false);
    }
  });

  it('the mode share denies while the size of the fleet is not known', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling, outage: { mode: 'share' } }, {});
    await time.advance(1_000);
    remote.ready = false;
    remote.fate = 'reject';
    // Its first heartbeats were answered; a limiter that never got an answer:
    const lonely = new ManualTime(1_000);
    const unreachable = new RemoteCeiling(lonely);
    unreachable.ready = false;
    const { api: other } = await remoteLimiterOf(
      { ceiling, outage: { mode: 'share' } },
      { time: lonely, remote: unreachable },
    );
    other.tryAcquire('k');
    await lonely.advance(60_000);
    expect(denied(other.decide('k'))).toMatchObject({ reason: 'degraded' });
    expect(await offer(other, lonely, 1_000, 10)).toBe(0);
    api.tryAcquire('k');
    await time.advance(60_000);
    expect(api.tryAcquire('k')).toBe(true);
  });

  it('the mode share uses at least `outage.fleet`', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling, outage: { mode: 'share', fleet: 50 } });
    remote.fleet = 3;
    await time.advance(6_000);
    remote.ready = false;
    api.tryAcquire('k');
    await time.advance(1);
    expect(await offer(api, time, 10_000)).toBe(20);
  });

  it('what the mode share admitted is charged once for the fleet, also for a key nobody asks again', async () => {
    const time = new ManualTime(1_000);
    const inner = new MemoryCeiling({ clock: storeClock(time) });
    const options = { ceiling, outage: { mode: 'share', fleet: 2 } } as const;
    const a = await remoteLimiterOf(options, { time, remote: new RemoteCeiling(time, 5, inner) });
    const b = await remoteLimiterOf(options, { time, remote: new RemoteCeiling(time, 5, inner) });
    for (const { api } of [a, b]) void api.acquire('k');
    await time.advance(30);
    for (const { remote } of [a, b]) remote.ready = false;
    for (const { api } of [a, b]) api.tryAcquire('k');
    let admitted = 0;
    for (let ms = 0; ms < 3_000; ms += 5) {
      await time.advance(5);
      for (const { api } of [a, b]) if (api.tryAcquire('k')) admitted += 1;
    }
    expect(admitted).toBeGreaterThan(200);
    expect(admitted).toBeLessThanOrEqual(302);
    for (const { remote } of [a, b]) remote.ready = true;
    // Nobody asks; a heartbeat finds the store, and both report.
    await time.advance(6_000);
    expect(a.remote.calls.some(({ since }) => since > 0)).toBe(true);
    expect(b.remote.calls.some(({ since }) => since > 0)).toBe(true);
    for (const { limiter } of [a, b]) expect(limiter.stats()[0]?.keys).toBe(0);
  });
});

describe('the breaker', () => {
  it('lets one probe at a time through, and is closed within two seconds of the store coming back (C86)', async () => {
    const { api, time, remote, limiter } = await remoteLimiterOf({ ceiling });
    remote.fate = 'lose-call';
    for (let ms = 0; ms < 20_000; ms += 5) {
      for (let key = 0; key < 20; key++) void api.acquire(`k${key}`);
      await time.advance(5);
    }
    expect(limiter.degraded).toBe(true);
    const before = remote.calls.length;
    for (let ms = 0; ms < 10_000; ms += 5) {
      for (let key = 0; key < 20; key++) void api.acquire(`k${key}`);
      await time.advance(5);
    }
    // One every half second or so; never two within a call's deadline of each other.
    expect(remote.calls.length - before).toBeLessThan(30);
    remote.fate = 'answer';
    let ms = 0;
    while (limiter.degraded && ms < 5_000) {
      void api.acquire('k0');
      await time.advance(5);
      ms += 5;
    }
    expect(ms).toBeLessThan(2_000);
    await time.advance(700);
    for (let key = 0; key < 20; key++) void api.acquire(`k${key}`);
    await time.advance(30);
    allowed(await soFar(api.acquire('k0')));
  });

  it('closes without traffic too, so that nobody waits for traffic that waits for it', async () => {
    const { api, time, remote, limiter } = await remoteLimiterOf({ ceiling });
    remote.ready = false;
    api.tryAcquire('k');
    await time.advance(1);
    expect(limiter.degraded).toBe(true);
    remote.ready = true;
    await time.advance(6_000);
    expect(limiter.degraded).toBe(false);
  });

  it('does not keep the process busy while somebody waits for the store to come back', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling });
    remote.ready = false;
    api.tryAcquire('k');
    await time.advance(1);
    let timers = 0;
    const after = time.after.bind(time);
    time.after = (delayMs, task) => {
      timers += 1;
      return after(delayMs, task);
    };
    const waiting = api.acquire('k', { maxWaitMs: 10_000 });
    await time.advance(3_000);
    expect(timers).toBeLessThan(200);
    remote.ready = true;
    await time.advance(2_000);
    allowed(await soFar(waiting));
  });

  it('drops what it could not send, and sends nothing late when the store is back (C82)', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling });
    remote.ready = false;
    for (let ms = 0; ms < 5_000; ms += 10) {
      for (let key = 0; key < 10; key++) api.tryAcquire(`k${key}`);
      await time.advance(10);
    }
    expect(remote.calls).toEqual([]);
    remote.ready = true;
    await time.advance(1_000);
    expect(remote.calls.length).toBeLessThanOrEqual(20);
  });

  it('a lost reply is disowned, and its grant is never spent (C83)', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling });
    remote.fate = 'lose-reply';
    const waiting = api.acquire('k', { cost: 10, maxWaitMs: 1_000 });
    await time.advance(20);
    remote.fate = 'answer';
    await time.advance(300);
    allowed(await soFar(waiting));
    expect(remote.calls[1]).toMatchObject({ disown: remote.calls[0]?.seq, need: 10_000_000 });
    await time.advance(3_000);
    // 10 were spent of 100, not 20.
    const rest = api.acquire('k', { cost: 100 });
    await time.advance(30);
    allowed(await soFar(rest));
  });
});
