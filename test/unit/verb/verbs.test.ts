import { describe, expect, it } from 'vitest';
import type { Account } from '../../../src/lease/account.js';
import { ManualTime } from '../../../src/testing.js';
import { peek, penalise, refund, reserve, upTo } from '../../../src/verb/one-limit.js';
import { schedule, wrap } from '../../../src/verb/schedule.js';
import { allowed, denied, limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';

const local = { rate: 1, burst: 10 };

describe.each([
  ['local bucket', { local }],
  ['ceiling in this process', { ceiling: local }],
])('a %s', (_, policy) => {
  it('is looked at by peek without being touched: what it says is what decide then says (C170)', async () => {
    const { api, limiter, time } = await limiterOf(policy);
    for (let i = 0; i < 100; i++) expect(allowed(peek(api, 'k', 10)).remaining).toBe(10);
    expect(limiter.stats()[0]).toMatchObject({ allowed: 0, deniedLocal: 0, deniedCeiling: 0 });
    api.tryAcquire('k', 8);
    const [peeked, decided] = [denied(peek(api, 'k', 5)), denied(api.decide('k', 5))];
    expect({ ...peeked, retryAfterMs: 0 }).toEqual({ ...decided, retryAfterMs: 0 });
    for (const { retryAfterMs = 0 } of [peeked, decided]) expect(Math.abs(retryAfterMs - 3_000)).toBeLessThanOrEqual(1);
    await time.advance(3_001);
    expect(allowed(peek(api, 'k', 5)).remaining).toBe(5);
    expect(allowed(api.decide('k', 5)).remaining).toBe(0);
  });

  it('gives as much as there is, in whole tokens, or nothing where that is less than the least', async () => {
    const { api, time } = await limiterOf(policy);
    expect(upTo(api, 'k', 7)).toMatchObject({ allowed: true, granted: 7, remaining: 3 });
    expect(upTo(api, 'k', 7)).toMatchObject({ allowed: true, granted: 3, remaining: 0 });
    expect(upTo(api, 'k', 7)).toMatchObject({ allowed: false, granted: 0, reason: 'empty' });
    await time.advance(2_501);
    expect(upTo(api, 'k', 7, 3)).toMatchObject({ allowed: false, granted: 0 });
    expect(upTo(api, 'k', 2.5, 1)).toMatchObject({ allowed: true, granted: 2.5 });
  });

  it('takes refunds of what was charged, and never holds more than its burst (C173)', async () => {
    const { api } = await limiterOf(policy);
    for (let i = 0; i < 3; i++) refund(api, 'k', 1);
    expect(peek(api, 'k').remaining).toBe(10);
    api.tryAcquire('k', 4);
    refund(api, 'k', 3);
    expect(peek(api, 'k').remaining).toBe(9);
    for (let i = 0; i < 5; i++) refund(api, 'k', 5);
    expect(peek(api, 'k').remaining).toBe(10);
    let passed = 0;
    while (api.tryAcquire('k')) passed += 1;
    expect(passed).toBe(10);
  });

  it('serves who waits from a refund', async () => {
    const { api } = await limiterOf({ local });
    api.tryAcquire('k', 10);
    const waits = api.acquire('k', { cost: 4, maxWaitMs: 60_000 });
    refund(api, 'k', 4);
    expect(allowed(await soFar(waits))).toMatchObject({ remaining: 0 });
  });

  it('is charged by a penalty what it need not have', async () => {
    const { api, time } = await limiterOf(policy);
    api.tryAcquire('k', 8);
    penalise(api, 'k', 5);
    expect(peek(api, 'k').remaining).toBe(0);
    await time.advance(3_000);
    expect(api.tryAcquire('k')).toBe(false);
    await time.advance(1_100);
    expect(api.tryAcquire('k')).toBe(true);
    // However large: never more than it holds when full.
    penalise(api, 'k', 1_000_000);
    await time.advance(12_000);
    expect(api.tryAcquire('k')).toBe(true);
  });

  it('is charged for a reservation at once, and for the difference when that is settled', async () => {
    const { api } = await limiterOf(policy);
    const reservation = await reserve(api, 'k', { cost: 6 });
    expect(reservation.allowed).toBe(true);
    expect(peek(api, 'k').remaining).toBe(4);
    expect(reservation.settle(2.5)).toBe(true);
    expect(peek(api, 'k').remaining).toBe(7);
    // Once: what comes later has no effect.
    expect(reservation.settle(0)).toBe(false);
    expect(reservation.cancel()).toBe(false);
    expect(peek(api, 'k').remaining).toBe(7);

    const dearer = await reserve(api, 'k', { cost: 2 });
    expect(dearer.settle(5)).toBe(true);
    expect(peek(api, 'k').remaining).toBe(2);

    const cancelled = await reserve(api, 'k', { cost: 2 });
    expect(cancelled.cancel()).toBe(true);
    expect(peek(api, 'k').remaining).toBe(2);
  });

  it('has spent a reservation that nobody settled, and leaks nothing else of it', async () => {
    const { api, time } = await limiterOf(policy);
    const lost = await reserve(api, 'k', { cost: 10, expiresAfterMs: 5_000 });
    const pending = time.pending;
    await time.advance(5_001);
    expect(time.pending).toBeLessThanOrEqual(pending);
    expect(lost.cancel()).toBe(false);
    expect(peek(api, 'k').remaining).toBe(5);
  });

  it('has not been charged for a reservation that was denied (C173)', async () => {
    const { api, limiter } = await limiterOf(policy);
    api.tryAcquire('k', 8);
    const refused = await reserve(api, 'k', { cost: 6 });
    expect(refused.decision).toMatchObject({ allowed: false, reason: 'empty' });
    expect([refused.settle(1), refused.cancel()]).toEqual([false, false]);
    expect(peek(api, 'k').remaining).toBe(2);
    const open = await reserve(api, 'k');
    const closing = limiter.close();
    expect(open.cancel()).toBe(false);
    void closing;
  });

  it.each([Number.NaN, -1, 1e-7])('refuses %d by every verb, and changes nothing', async (cost) => {
    const { api } = await limiterOf(policy);
    const code = 'HEADGATE_INVALID_COST';
    for (const verb of [
      () => peek(api, 'k', cost),
      () => upTo(api, 'k', cost),
      () => upTo(api, 'k', 5, cost),
      () => refund(api, 'k', cost),
      () => penalise(api, 'k', cost),
    ]) {
      expect(verb).toThrow(expect.objectContaining({ code }));
    }
    const reservation = await reserve(api, 'k', { cost: 2 });
    expect(() => reservation.settle(cost)).toThrow(expect.objectContaining({ code }));
    expect(reservation.settle(2)).toBe(true);
    expect(peek(api, 'k').remaining).toBe(8);
  });
});

describe('a handle in place of a limiter and a key', () => {
  it('is asked for the same, of the same bucket', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, burst: 10 }, concurrency: { limit: 1 } });
    const handle = api.key('k');
    expect(handle.policy).toBe(api.policy);
    expect(peek(handle, 10)).toEqual(peek(api, 'k', 10));
    expect(upTo(handle, 4).granted).toBe(4);
    refund(handle, 2);
    expect(peek(handle).remaining).toBe(8);
    penalise(handle, 3);
    const reservation = await reserve(handle, { cost: 4 });
    reservation.settle(1);
    expect(peek(api, 'k').remaining).toBe(4);
    expect(peek(api, 'another').remaining).toBe(10);
    const seat = await handle.enter();
    expect((await api.enter('k')).allowed).toBe(false);
    seat.release();
    expect(await schedule(handle, () => 'done', { cost: 2 })).toBe('done');
    expect(await wrap(handle, (n: number) => n + 1, { cost: (n) => n })(1)).toBe(2);
    expect(peek(handle).remaining).toBe(1);
    expect(() => wrap(handle, () => 1, { key: 'k' } as never)).toThrow('option of `wrap`');
    await handle.block(1_000);
    expect(api.decide('k')).toMatchObject({ reason: 'blocked' });
    await handle.unblock();
    await handle.reset();
    expect(peek(api, 'k').remaining).toBe(10);
    await time.advance(0);
  });

  it('is refused what the key would be', async () => {
    const { api } = await limiterOf({ local: { rate: 1, burst: 10 } });
    expect(() => api.key('')).toThrow('`key`');
    expect(() => peek(api, '')).toThrow('`key`');
    expect(() => penalise(api, 'x'.repeat(600))).toThrow('`key`');
    expect(() => peek(api.key('k'), -1)).toThrow('`cost`');
    expect(() => upTo(api.key('k'), 11, 11)).toThrow('local burst of 10');
  });
});

describe('a ceiling elsewhere', () => {
  const policy = { ceiling: { rate: 100, burst: 100 } };

  it('is cold to a peek, which fetches nothing', async () => {
    const { api, remote, time } = await remoteLimiterOf(policy);
    expect(denied(peek(api, 'k')).reason).toBe('cold');
    await time.advance(1_000);
    expect(remote.calls).toHaveLength(0);
    expect(denied(peek(api, 'k')).reason).toBe('cold');
    api.tryAcquire('k');
    await time.advance(10);
    expect(peek(api, 'k').allowed).toBe(true);
  });

  it('takes a refund back into the wallet as long as it does not know of the spend, and never more', async () => {
    const { api, time, limiter } = await remoteLimiterOf(policy);
    for (let i = 0; i < 20; i++) {
      void api.acquire('k', { cost: 2 });
      await time.advance(20);
    }
    const { remaining } = peek(api, 'k');
    expect(remaining).toBeGreaterThan(3);
    expect(api.tryAcquire('k', 3)).toBe(true);
    refund(api, 'k', 3);
    expect(peek(api, 'k').remaining).toBe(remaining);
    for (let i = 0; i < 100; i++) refund(api, 'k', 90);
    // What the store counts on is all that there can be.
    expect(peek(api, 'k').remaining).toBeLessThanOrEqual(100);
    await time.advance(1_000);
    const { tokensGranted = 0, tokensReturned = 0 } = limiter.stats()[0] ?? {};
    expect(tokensGranted - tokensReturned).toBeLessThanOrEqual(100 + 140);
  });

  it('gives back through the store what that knows to be spent (C173)', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 0.001, burst: 100 } });
    const spent = api.acquire('k', { cost: 60 });
    await time.advance(1_000);
    expect((await spent).allowed).toBe(true);
    refund(api, 'k', 50);
    await time.advance(150);
    const again = api.acquire('k', { cost: 90 });
    await time.advance(50);
    expect((await again).allowed).toBe(true);
    for (let i = 0; i < 5; i++) refund(api, 'k', 100);
    await time.advance(150);
    const most = [api.acquire('k', { cost: 60 }), api.acquire('k', { cost: 60 })];
    await time.advance(300);
    expect((await Promise.all(most)).filter(({ allowed }) => allowed)).toHaveLength(1);
    expect(remote.calls.filter(({ refund }) => refund > 0)).toHaveLength(2);
  });

  it('makes itself known to a store that may have forgotten it, before it gives back', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 1, per: '1h', burst: 1_000 } });
    const reserving = reserve(api, 'tenant', { cost: 900 });
    await time.advance(100);
    const reservation = await reserving;
    await time.advance(50_000);
    expect(reservation.settle(100)).toBe(true);
    await time.advance(150);
    const carried = remote.calls.filter(({ refund }) => refund > 0);
    expect(carried).toMatchObject([{ refund: 800_000_000 }]);
    expect(remote.inner.inspect('api', 'tenant')?.buckets.get('api:tenant')?.level.tokens).toBeGreaterThan(899_000_000);
  });

  it('loses a refund whose call is lost, and gives none twice', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 0.001, burst: 100 } });
    const spent = api.acquire('k', { cost: 100 });
    await time.advance(1_000);
    expect((await spent).allowed).toBe(true);
    const tokens = (): number => (remote.inner.inspect('api', 'k')?.buckets.get('api:k')?.level.tokens ?? 0) / 1e6;
    remote.fate = 'lose-reply';
    refund(api, 'k', 30);
    await time.advance(400);
    remote.fate = 'answer';
    await time.advance(2_000);
    expect(tokens()).toBeLessThan(31);
    // What is lost now only makes it known again: the refund is still here.
    remote.fate = 'lose-call';
    refund(api, 'k', 30);
    await time.advance(400);
    remote.fate = 'answer';
    await time.advance(2_000);
    expect(Math.floor(tokens())).toBe(60);
    const one = api.acquire('k');
    await time.advance(10);
    expect((await one).allowed).toBe(true);
    remote.fate = 'lose-call';
    refund(api, 'k', 30);
    await time.advance(150);
    remote.fate = 'answer';
    await time.advance(2_000);
    expect(tokens()).toBeLessThan(61);
  });

  it('gives a reservation of a window back only while that window lasts', async () => {
    const { api, time } = await remoteLimiterOf(
      { ceiling: { algorithm: 'fixed-window', limit: 10, window: '10s' } },
      { time: new ManualTime(1_000, 1_800_000_000_000) },
    );
    const reserving = [reserve(api, 'k', { cost: 6 }), reserve(api, 'k', { cost: 4 })];
    await time.advance(100);
    const [first, second] = await Promise.all(reserving);
    await time.advance(3_000);
    first?.cancel();
    await time.advance(200);
    const acquired = async (cost: number): Promise<boolean> => {
      const decision = api.acquire('k', { cost });
      await time.advance(50);
      return (await decision).allowed;
    };
    expect([await acquired(7), await acquired(6)]).toEqual([false, true]);
    await time.advance(10_000);
    expect(await acquired(8)).toBe(true);
    second?.cancel();
    await time.advance(200);
    expect([await acquired(3), await acquired(2)]).toEqual([false, true]);
  });

  it('can be filled up for everybody, or says that it could not be', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 0.001, burst: 100 } });
    const spent = api.acquire('k', { cost: 90 });
    await time.advance(3_000);
    expect((await spent).allowed).toBe(true);
    penalise(api, 'k', 50);
    const fill = async (): Promise<unknown> => {
      const { account } = api.keys.find('k', api.teller.now());
      const filled = api.teller.keeper.refill(account as Account).catch((error: Error) => error);
      await time.advance(120);
      return filled;
    };
    expect(await fill()).toBe(undefined);
    const again = api.acquire('k', { cost: 100 });
    await time.advance(50);
    expect((await again).allowed).toBe(true);
    for (const fate of ['lose-call', 'reject'] as const) {
      remote.fate = fate;
      expect(await fill()).toMatchObject({ code: 'HEADGATE_CEILING' });
    }
    remote.fate = 'answer';
    await time.advance(5_000);
    remote.ready = false;
    expect(await fill()).toMatchObject({ code: 'HEADGATE_CEILING' });
    remote.ready = true;
    await time.advance(5_000);
    expect(await fill()).toBe(undefined);
  });

  it('is charged a penalty for the whole fleet, out of what is granted next', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 1, burst: 100 } });
    penalise(api, 'k', 60);
    await time.advance(20);
    const bucket = remote.inner.inspect('api', 'k')?.buckets.get('api:k');
    expect(bucket?.level.tokens).toBeLessThanOrEqual(41_000_000);
    const rest = api.acquire('k', { cost: 41, maxWaitMs: 0 });
    expect((await rest).allowed).toBe(false);
    const less = api.acquire('k', { cost: 40 });
    await time.advance(20);
    expect((await less).allowed).toBe(true);
  });
});

describe('counting after the outcome', () => {
  it('is a reservation that is cancelled where the outcome does not count: here only failures do', async () => {
    const { api } = await limiterOf({ local: { rate: 0.001, burst: 3 } });
    const login = async (succeeds: boolean): Promise<string> => {
      const attempt = await reserve(api, 'alice');
      if (!attempt.allowed) return 'try later';
      if (succeeds) attempt.cancel();
      return succeeds ? 'welcome' : 'wrong password';
    };
    for (let i = 0; i < 10; i++) expect(await login(true)).toBe('welcome');
    for (let i = 0; i < 3; i++) expect(await login(false)).toBe('wrong password');
    expect(await login(true)).toBe('try later');
  });
});

describe('a queue', () => {
  const slow = { local: { rate: 1, burst: 1 } };

  it('serves higher priorities first, and each in the order of arrival', async () => {
    const { api, time } = await limiterOf(slow);
    api.tryAcquire('k');
    const served: string[] = [];
    for (const [name, priority] of [
      ['a', 0],
      ['b', 0],
      ['high', 5],
      ['low', -1],
      ['high too', 5],
    ] as const) {
      void api.acquire('k', { maxWaitMs: 60_000, priority }).then(() => served.push(name));
    }
    await time.advance(5_000);
    expect(served).toEqual(['high', 'high too', 'a', 'b', 'low']);
  });

  it('is passed by a call of a higher priority only, and reckons its wait by those before it', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, burst: 5 } });
    api.tryAcquire('k', 4);
    const large = api.acquire('k', { cost: 5, maxWaitMs: 60_000 });
    expect(denied(await api.acquire('k', { maxWaitMs: 0 })).reason).toBe('empty');
    expect(allowed(await api.acquire('k', { priority: 1 })).allowed).toBe(true);
    const soon = api.acquire('k', { priority: 1, maxWaitMs: 1_000 });
    expect(await soFar(soon)).toBe('pending');
    expect(denied(await soFar(api.acquire('k', { maxWaitMs: 1_000 }))).allowed).toBe(false);
    await time.advance(1_000);
    expect(allowed(await soFar(soon)).allowed).toBe(true);
    await time.advance(5_000);
    expect(allowed(await soFar(large)).allowed).toBe(true);
  });

  it('takes as many as it may, refuses the next at once, and has a place again when one leaves (C52, C56)', async () => {
    const { api, time } = await limiterOf(slow);
    api.tryAcquire('k');
    const abort = new AbortController();
    const options = { maxWaitMs: 60_000, maxQueued: 2 };
    const waiting = [api.acquire('k', { ...options, signal: abort.signal }), api.acquire('k', options)];
    const refused = denied(await soFar(api.acquire('k', options)));
    expect(refused).toMatchObject({ limitedBy: 'policy', reason: 'queue-full', retryAfterMs: 3_000 });
    abort.abort(new Error('gone'));
    await expect(waiting[0]).rejects.toThrow('gone');
    const next = api.acquire('k', options);
    expect(await soFar(next)).toBe('pending');
    await time.advance(2_000);
    expect(allowed(await soFar(next)).allowed).toBe(true);
  });

  it.each([[{ priority: 0.5 }], [{ priority: Number.NaN }], [{ maxQueued: -1 }], [{ maxQueued: 1.5 }]])(
    'refuses %j',
    async (options) => {
      const { api } = await limiterOf(slow);
      await expect(api.acquire('k', options)).rejects.toMatchObject({ code: 'HEADGATE_INVALID_OPTION' });
    },
  );
});
