import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { Decision } from '../../../src/limiter/decision.js';
import type { PolicyLimiter } from '../../../src/limiter/policy-limiter.js';
import type { ManualTime } from '../../../src/testing.js';
import { allowed, denied, limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';

/** Waits for tokens `times` times over, and records when each was allowed, counted from now. */
function grantTimes(api: PolicyLimiter, time: ManualTime, times: number, cost = 1): number[] {
  const start = time.now();
  const granted: number[] = [];
  for (let i = 0; i < times; i++) {
    void api.acquire('k', { cost, maxWaitMs: Number.POSITIVE_INFINITY }).then((decision) => {
      if (decision.allowed) granted.push(time.now() - start);
    });
  }
  return granted;
}

describe('acquire', () => {
  it('answers at once where the tokens are in hand', async () => {
    const { api } = await limiterOf({ local: { rate: 1, burst: 2 } });
    expect(await soFar(api.acquire('k'))).toMatchObject({ allowed: true });
  });

  it('waits for one answer of the store where nothing is in hand, and needs no maxWaitMs for it (C155)', async () => {
    const { api, time } = await remoteLimiterOf({ ceiling: { rate: 10, burst: 10 } });
    const first = api.acquire('k');
    await time.advance(9);
    expect(await soFar(first)).toBe('pending');
    await time.advance(1.5);
    allowed(await soFar(first));
  });

  it('does not wait for tokens without maxWaitMs: denied when the store has answered that there are none', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 1, burst: 1 } });
    const first = api.acquire('k');
    await time.advance(11);
    allowed(await soFar(first));
    const second = api.acquire('k');
    await time.advance(22);
    const decision = denied(await soFar(second));
    expect(decision).toMatchObject({ limitedBy: 'ceiling', reason: 'empty', degraded: false });
    // From now on the answer is known, and nobody waits for another one.
    const sent = remote.calls.length;
    expect(denied(await soFar(api.acquire('k'))).retryAfterMs).toBeGreaterThan(900);
    expect(remote.calls.length).toBe(sent);
  });

  it('is allowed at the retry time it was told, where nobody else takes', async () => {
    for (const ceiling of [
      { rate: 1, burst: 1 },
      { rate: 10, burst: 3 },
      { rate: 1, per: '1m' as const, burst: 2 },
    ]) {
      const { api, time } = await remoteLimiterOf({ ceiling });
      for (let i = 0; i < 3; i++) {
        for (;;) {
          const attempt = api.acquire('k');
          await time.advance(30);
          const decision = (await soFar(attempt)) as Decision;
          if (decision.allowed) continue;
          await time.advance(decision.retryAfterMs as number);
          break;
        }
        const again = api.acquire('k');
        await time.advance(30);
        allowed(await soFar(again));
      }
    }
  });

  it('waits up to maxWaitMs, and no longer', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, burst: 1 } });
    api.tryAcquire('k');
    const waiting = api.acquire('k', { maxWaitMs: 1_000 });
    await time.advance(999);
    expect(await soFar(waiting)).toBe('pending');
    await time.advance(1);
    allowed(await soFar(waiting));
  });

  it('refuses at once a wait that can not end in time, and leaves no trace (C62)', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, burst: 1 } });
    api.tryAcquire('k');
    await time.advance(400);
    for (let i = 0; i < 20; i++) {
      expect(denied(await soFar(api.acquire('k', { maxWaitMs: 100 })))).toMatchObject({ retryAfterMs: 600 });
    }
    await time.advance(600);
    expect(api.tryAcquire('k')).toBe(true);
  });

  it('counts those ahead when it says whether a wait can end in time', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, burst: 3 } });
    api.tryAcquire('k', 3);
    const ahead = api.acquire('k', { cost: 2, maxWaitMs: 10_000 });
    expect(denied(await soFar(api.acquire('k', { maxWaitMs: 2_900 })))).toMatchObject({ retryAfterMs: 3_000 });
    const behind = api.acquire('k', { maxWaitMs: 3_000 });
    // A queue may need more than the bucket ever holds.
    expect(denied(await soFar(api.acquire('k', { cost: 3, maxWaitMs: 5_900 })))).toMatchObject({ retryAfterMs: 6_000 });
    await time.advance(2_000);
    allowed(await soFar(ahead));
    await time.advance(999);
    expect(await soFar(behind)).toBe('pending');
    await time.advance(1);
    allowed(await soFar(behind));
  });

  it('releases waiters in the order they came (C49)', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, per: '10s', burst: 1 } });
    const start = time.now();
    const log: string[] = [];
    for (let i = 0; i < 5; i++) {
      void api.acquire('k', { maxWaitMs: 60_000 }).then(() => log.push(`${i} at ${time.now() - start}`));
      await time.advance(1_000);
    }
    await time.advance(60_000);
    expect(log).toEqual(['0 at 0', '1 at 10000', '2 at 20000', '3 at 30000', '4 at 40000']);
  });

  it('is not starved behind smaller ones, and nobody overtakes it (C50)', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, burst: 10 } });
    api.tryAcquire('k', 10);
    const large = api.acquire('k', { cost: 10, maxWaitMs: 60_000 });
    const small: Promise<Decision>[] = [];
    for (let i = 0; i < 19; i++) {
      await time.advance(500);
      expect(api.tryAcquire('k')).toBe(false);
      small.push(api.acquire('k', { maxWaitMs: 60_000 }));
    }
    expect(await soFar(large)).toBe('pending');
    await time.advance(500);
    allowed(await soFar(large));
    expect(await soFar(small[0] as Promise<Decision>)).toBe('pending');
    await time.advance(1_000);
    allowed(await soFar(small[0] as Promise<Decision>));
  });

  it('spaces callers that waited together (C58)', async () => {
    const { api, time } = await limiterOf({ local: { rate: 5, burst: 1 } });
    api.tryAcquire('k');
    const granted = grantTimes(api, time, 3);
    await time.advance(1_000);
    expect(granted).toEqual([200, 400, 600]);
    // And a hundred of them, in every window.
    const { api: many, time: clock } = await limiterOf({ local: { rate: 5, burst: 3 } });
    const times = grantTimes(many, clock, 100);
    await clock.advance(20_000);
    expect(times).toHaveLength(100);
    for (const [i, from] of times.entries()) {
      for (let j = i; j < times.length; j++) {
        expect(j - i + 1).toBeLessThanOrEqual(3 + (((times[j] as number) - from) / 1_000) * 5 + 1e-6);
      }
    }
  });

  it('lets no more wait than it is told: the hundred-and-first is refused, and a place that is left is free (C52, C56)', async () => {
    const { api } = await limiterOf({ local: { rate: 1, burst: 1 } });
    api.tryAcquire('k');
    const abort = new AbortController();
    const options = { maxWaitMs: 1_000_000, maxQueued: 100 };
    const waiting = [
      ...Array.from({ length: 99 }, () => api.acquire('k', options)),
      api.acquire('k', { ...options, signal: abort.signal }),
    ];
    expect(denied(await soFar(api.acquire('k', options)))).toMatchObject({ reason: 'queue-full' });
    abort.abort(new Error('gone'));
    await expect(waiting[99]).rejects.toThrow('gone');
    expect(await soFar(api.acquire('k', options))).toBe('pending');
  });

  it('waits for what is missing, not for the whole cost (C59)', async () => {
    for (const tier of ['local', 'ceiling'] as const) {
      const { api, time } = await limiterOf({ [tier]: { rate: 1, burst: 3 } });
      api.tryAcquire('k', 2);
      await time.advance(0);
      const granted = grantTimes(api, time, 1, 2);
      await time.advance(1_010);
      expect(granted).toHaveLength(1);
      expect(granted[0]).toBeLessThan(1_003);
    }
  });

  it.each([1_500, 3_000])('keeps pace at %i a second, and never exceeds it (C05)', async (rate) => {
    const { api, time } = await limiterOf({ local: { rate, burst: 10 } });
    const granted = grantTimes(api, time, 3_000);
    const expected = (2_990 / rate) * 1_000;
    for (let at = 0; at < expected + 50; at += 50) await time.advance(50);
    expect(granted).toHaveLength(3_000);
    expect(granted.at(-1)).toBeGreaterThanOrEqual(Math.floor(expected));
    expect(granted.at(-1)).toBeLessThan(expected * 1.02);
  });

  it('does not stall where less than a millisecond is missing (C35)', async () => {
    const { api, time } = await limiterOf({ local: { rate: 4_095, per: '1ms', burst: 4_095 } });
    api.tryAcquire('k', 4_095);
    const granted = grantTimes(api, time, 1);
    await time.advance(2);
    expect(granted).toHaveLength(1);
    const { api: half, time: clock } = await limiterOf({ local: { rate: 1, per: '0.5ms', burst: 1 } });
    const all = grantTimes(half, clock, 100);
    await clock.advance(200);
    expect(all).toHaveLength(100);
  });

  it('waits for a month where the rate says so, on timers that stay below 2^31 ms (C34)', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, per: '30d', burst: 1 } });
    const delays: number[] = [];
    const after = time.after.bind(time);
    time.after = (delayMs, task) => {
      delays.push(delayMs);
      return after(delayMs, task);
    };
    expect(api.tryAcquire('k')).toBe(true);
    const granted = grantTimes(api, time, 1);
    await time.advance(10);
    expect(api.tryAcquire('k')).toBe(false);
    await time.advance(30 * 86_400_000 - 11);
    expect(granted).toEqual([]);
    await time.advance(1);
    expect(granted).toEqual([30 * 86_400_000]);
    expect(Math.max(...delays)).toBeLessThanOrEqual(2_147_483_647);
  });

  it('asks for no more than it needs, and for a short time only, when it waits for a first lease', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 10, burst: 10 } });
    const waiting = api.acquire('k');
    await time.advance(20);
    allowed(await soFar(waiting));
    expect(remote.calls[0]).toMatchObject({ need: 1_000_000, want: 0, lease: 100_000 });
  });

  it('merges what waits in one tick into one call, and serves it in order (C163)', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 5, per: '1m', burst: 5 } });
    const costs = [1, 2, 4, 1, 1];
    const waiting = costs.map((cost) => api.acquire('k', { cost }));
    await time.advance(60);
    const decisions = await Promise.all(waiting.map(soFar));
    const passed = costs.filter((_, i) => (decisions[i] as Decision).allowed);
    expect(passed.reduce((sum, cost) => sum + cost, 0)).toBeLessThanOrEqual(5);
    expect(decisions.slice(0, 2).map((decision) => (decision as Decision).allowed)).toEqual([true, true]);
    expect(remote.calls[0]).toMatchObject({ need: 5_000_000, head: 1_000_000 });
    for (const decision of decisions) if (!(decision as Decision).allowed) denied(decision).retryAfterMs;
  });

  it('takes a call under way for another key for no reason to wait (C155)', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 10, burst: 10 } });
    remote.delayMs = 40;
    void api.acquire('slow');
    await time.advance(1);
    remote.delayMs = 5;
    const quick = api.acquire('quick');
    await time.advance(11);
    allowed(await soFar(quick));
  });
});

describe('aborting an acquire', () => {
  it('before it waits: rejects with the reason, asks and charges nothing', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 10, burst: 10 } });
    const reason = new Error('gone');
    await expect(api.acquire('k', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await time.advance(50);
    expect(remote.calls).toEqual([]);
  });

  it('while it waits: rejects at once, charges nothing, leaves no listener, and lets the next one on (C53, C56)', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, burst: 1 } });
    api.tryAcquire('k');
    const control = new AbortController();
    const { signal } = control;
    const a = api.acquire('k', { signal, maxWaitMs: 5_000 });
    const b = api.acquire('k', { signal: AbortSignal.any([]), maxWaitMs: 5_000 });
    const c = api.acquire('k', { signal, maxWaitMs: 5_000 });
    await time.advance(500);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    control.abort();
    await expect(a).rejects.toMatchObject({ name: 'AbortError' });
    await expect(c).rejects.toMatchObject({ name: 'AbortError' });
    await time.advance(499);
    expect(await soFar(b)).toBe('pending');
    await time.advance(1);
    allowed(await soFar(b));
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    const after = api.acquire('k', { signal: new AbortController().signal, maxWaitMs: 5_000 });
    await time.advance(1_000);
    allowed(await soFar(after));
  });

  it('takes its listener off the signal when it is answered', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, burst: 1 } });
    api.tryAcquire('k');
    const { signal } = new AbortController();
    void api.acquire('k', { signal, maxWaitMs: 5_000 });
    void api.acquire('k', { signal, maxWaitMs: 5_000 });
    await time.advance(1_000);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await time.advance(1_000);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('of the large one in front lets the small one behind go when its own tokens are there (C55)', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, burst: 5 } });
    api.tryAcquire('k', 5);
    const control = new AbortController();
    const a = api.acquire('k', { cost: 5, signal: control.signal, maxWaitMs: 60_000 });
    const granted = grantTimes(api, time, 1);
    await time.advance(200);
    control.abort();
    await expect(a).rejects.toThrow();
    await time.advance(800);
    expect(granted).toEqual([1_000]);
  });

  it('leaves no timer and no key behind (C52)', async () => {
    const { api, time, limiter } = await limiterOf({ local: { rate: 1, burst: 1 } });
    const controls = Array.from({ length: 200 }, () => new AbortController());
    const waits = controls.map(({ signal }) => api.acquire('k', { signal, maxWaitMs: 1e6 }));
    for (const control of controls) control.abort();
    await Promise.allSettled(waits);
    expect(limiter.stats()[0]?.waiting).toBe(0);
    await time.advance(5_000);
    expect(limiter.stats()[0]?.keys).toBe(0);
    expect(time.pending).toBe(0);
  });
});
