import { describe, expect, it } from 'vitest';
import { CeilingError } from '../../../src/errors.js';
import type { PolicyLimiter } from '../../../src/limiter/policy-limiter.js';
import type { PolicyDocument } from '../../../src/policy/policy.js';
import { ManualTime, MemoryCeiling, storeClock } from '../../../src/testing.js';
import { peek, penalise, reserve, upTo } from '../../../src/verb/one-limit.js';
import { decideAll } from '../../../src/verb/several.js';
import { denied, limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';
import { RemoteCeiling } from '../../support/remote-ceiling.js';

const MINUTE = 60_000;
const local = { local: { rate: 10, burst: 5 } } as const;

/** Several limiters on one ceiling in this process. */
async function fleetOf(size: number, policy: Omit<PolicyDocument, 'name'> = local) {
  const time = new ManualTime(1_000);
  const ceiling = new MemoryCeiling({ clock: storeClock(time), newStore: 'full' });
  const instances = [];
  for (let i = 0; i < size; i++) instances.push(await limiterOf(policy, { time, ceiling }));
  return { time, ceiling, apis: instances.map(({ api }) => api) as [PolicyLimiter, PolicyLimiter, PolicyLimiter] };
}

/** Limiters that are each a round trip away from one store. */
async function remoteFleetOf(size: number, policy: Omit<PolicyDocument, 'name'> = local) {
  const time = new ManualTime(1_000);
  const inner = new MemoryCeiling({ clock: storeClock(time), newStore: 'full' });
  const instances = [];
  for (let i = 0; i < size; i++) {
    const remote = new RemoteCeiling(time, 5, inner).withMarks();
    // Of one chance all would have one identity.
    const random = () => (i + 1) / 10;
    instances.push(await started(remoteLimiterOf(policy, { time, remote, random }), time));
  }
  return { time, inner, instances };
}

/** What a start comes to that waits for the store, whose answers take time that the test must let pass. */
async function started<T>(starting: Promise<T>, time: ManualTime): Promise<T> {
  let done = false;
  const ended = starting.finally(() => {
    done = true;
  });
  while (!done) {
    await time.advance(1);
    await new Promise(setImmediate);
  }
  return ended;
}

describe('a blocked key', () => {
  it('is denied by every verb, with the time that is left, and passes when it is over', async () => {
    const { api, time, limiter } = await limiterOf(local);
    expect(api.tryAcquire('k')).toBe(true);
    expect(await api.block('k', MINUTE)).toEqual({ forMs: MINUTE, step: 0 });

    const blocked = { allowed: false, limitedBy: 'policy', reason: 'blocked', retryAfterMs: MINUTE };
    expect(api.decide('k')).toMatchObject({ ...blocked, remaining: 0 });
    expect(api.tryAcquire('k')).toBe(false);
    expect(api.key('k').tryAcquire()).toBe(false);
    expect(await api.acquire('k')).toMatchObject(blocked);
    expect((await reserve(api, 'k')).decision).toMatchObject(blocked);
    expect(upTo(api, 'k', 3)).toMatchObject({ ...blocked, granted: 0 });
    expect(await api.enter('k')).toMatchObject({ allowed: false, reason: 'blocked' });
    expect(
      decideAll(limiter, [
        { policy: 'api', key: 'other' },
        { policy: 'api', key: 'k' },
      ]),
    ).toMatchObject({
      deniedBy: 1,
      denied: { reason: 'blocked' },
    });
    expect(api.tryAcquire('other', 5)).toBe(true);

    await time.advance(MINUTE - 1);
    expect(api.decide('k')).toMatchObject({ ...blocked, retryAfterMs: 1 });
    await time.advance(1);
    expect(api.decide('k')).toMatchObject({ allowed: true, remaining: 4 });
    expect(api.tryAcquire('k', 4)).toBe(true);
  });

  it('is blocked also where the call would have been decided without a look at anything', async () => {
    const { api } = await limiterOf(local);
    const handle = api.key('k');
    for (let i = 0; i < 3; i++) expect(handle.tryAcquire()).toBe(true);
    const blocking = api.block('k', MINUTE);
    // At once, and not when the store has heard.
    expect(handle.tryAcquire()).toBe(false);
    await blocking;
  });

  it('is peeked at as it is decided, which changes nothing (C170)', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, burst: 5, per: '10s' } });
    for (let i = 0; i < 5; i++) api.tryAcquire('k');
    if (!api.tryAcquire('k')) await api.block('k', MINUTE);
    expect(peek(api, 'k')).toMatchObject({ reason: 'blocked', retryAfterMs: MINUTE });
    expect(denied(api.decide('k')).retryAfterMs).toBe(MINUTE);
    await time.advance(1_000);
    expect(peek(api, 'k')).toMatchObject({ retryAfterMs: MINUTE - 1_000 });
  });

  it('stays so for ever where that was said, whoever calls and whenever, until it is unblocked (C169)', async () => {
    const { time, ceiling, apis } = await fleetOf(1, { local: { rate: 1, burst: 1 } });
    await apis[0].block('k', Number.POSITIVE_INFINITY);
    for (const wait of [0, 1_200, 86_400_000]) {
      await time.advance(wait);
      expect(apis[0].decide('k')).toMatchObject({ reason: 'blocked', retryAfterMs: undefined });
      expect(await apis[0].acquire('k', { maxWaitMs: Number.POSITIVE_INFINITY })).toMatchObject({ allowed: false });
    }
    const restarted = await limiterOf({ local: { rate: 1, burst: 1 } }, { time, ceiling });
    expect(restarted.api.decide('k')).toMatchObject({ reason: 'blocked' });
    await restarted.api.unblock('k');
    expect(restarted.api.tryAcquire('k')).toBe(true);
    expect(apis[0].tryAcquire('k')).toBe(true);
  });

  it('says when it can really pass again, if that is later than the end of the block', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, burst: 5 } });
    expect(api.tryAcquire('k', 5)).toBe(true);
    await api.block('k', 1_000);
    expect(denied(api.decide('k', 3)).retryAfterMs).toBe(3_000);
    await time.advance(2_999);
    expect(api.tryAcquire('k', 3)).toBe(false);
    await time.advance(1);
    expect(api.tryAcquire('k', 3)).toBe(true);
  });

  it('is blocked also where the table has no room for it', async () => {
    const { api } = await limiterOf({ local: { rate: 1, burst: 1_000 } }, { maxKeys: 1 });
    api.tryAcquire('one', 1_000);
    expect(api.decide('two')).toMatchObject({ allowed: true });
    await api.block('two', MINUTE);
    expect(api.decide('two')).toMatchObject({ reason: 'blocked' });
    expect(api.decide('three')).toMatchObject({ allowed: true });
  });

  it('passes all the same where the policy allows it outright, and is counted only where that shadows', async () => {
    const { api, limiter } = await limiterOf({
      ...local,
      overrides: { vip: { mode: 'allow' }, new: { mode: 'shadow' } },
    });
    for (const key of ['vip', 'new', 'old']) await api.block(key, MINUTE);
    expect(api.decide('vip')).toMatchObject({ allowed: true, remaining: Number.POSITIVE_INFINITY });
    expect(api.decide('new')).toMatchObject({ allowed: true, shadow: { reason: 'blocked', retryAfterMs: MINUTE } });
    expect(await api.acquire('new', { maxWaitMs: 2 * MINUTE })).toMatchObject({ allowed: true });
    expect(api.decide('old')).toMatchObject({ allowed: false });
    expect(limiter.stats()[0]).toMatchObject({ blocked: 3, deniedPolicy: 1, deniedBlocked: 3, shadowDenied: 2 });
  });
});

describe('those who wait', () => {
  it('wait for the end of a block if they can outwait it, and take no lease meanwhile', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling: { rate: 10, burst: 10 } });
    await expect(api.block('k', 1_000)).rejects.toThrow(CeilingError);
    const patient = api.acquire('k', { maxWaitMs: 2_000 });
    expect(await api.acquire('k', { maxWaitMs: 999 })).toMatchObject({ reason: 'blocked', retryAfterMs: 1_000 });
    await time.advance(999);
    expect(await soFar(patient)).toBe('pending');
    expect(remote.calls).toHaveLength(0);
    await time.advance(20);
    expect(await patient).toMatchObject({ allowed: true });
  });

  it('are answered at once when a block arrives that they can not outwait', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, burst: 1 }, concurrency: { limit: 1 } });
    api.tryAcquire('k');
    const short = api.acquire('k', { maxWaitMs: 5_000 });
    const long = api.acquire('k', { maxWaitMs: 20_000 });
    const seat = await api.enter('k');
    const waiting = api.enter('k', { maxWaitMs: 5_000 });
    const seated = api.enter('k', { maxWaitMs: 20_000 });
    await api.block('k', 10_000);
    expect(await soFar(short)).toMatchObject({ reason: 'blocked', retryAfterMs: 10_000 });
    expect(await soFar(long)).toBe('pending');
    expect(await soFar(waiting)).toMatchObject({ allowed: false, reason: 'blocked' });
    expect(await soFar(seated)).toBe('pending');
    seat.release();
    await time.advance(10_001);
    expect(await soFar(long)).toMatchObject({ allowed: true });
    expect(await soFar(seated)).toMatchObject({ allowed: true });
  });

  it('are served when the block is lifted', async () => {
    const { api } = await limiterOf(local);
    await api.block('k', MINUTE);
    const waiting = api.acquire('k', { maxWaitMs: 2 * MINUTE });
    expect(await soFar(waiting)).toBe('pending');
    await api.unblock('k');
    expect(await soFar(waiting)).toMatchObject({ allowed: true });
  });
});

describe('a ladder of blocks', () => {
  const LADDER = [MINUTE, 5 * MINUTE, 60 * MINUTE];

  it('climbs with each block, for the fleet as one, and is forgotten', async () => {
    const { time, apis } = await fleetOf(2);
    const [a, b] = apis;
    const both = await Promise.all([a.block('k', LADDER), b.block('k', LADDER)]);
    expect(both).toEqual([
      { forMs: MINUTE, step: 1 },
      { forMs: MINUTE, step: 1 },
    ]);
    await time.advance(MINUTE);
    expect(await b.block('k', LADDER)).toEqual({ forMs: 5 * MINUTE, step: 2 });
    expect(denied(a.decide('k')).retryAfterMs).toBe(5 * MINUTE);
    await time.advance(5 * MINUTE + 60 * MINUTE - 1);
    expect(await a.block('k', LADDER)).toEqual({ forMs: 60 * MINUTE, step: 3 });
    await time.advance(2 * 60 * MINUTE);
    expect(await a.block('k', LADDER, { forgetAfterMs: MINUTE })).toEqual({ forMs: MINUTE, step: 1 });
  });

  it('is refused where it is none', async () => {
    const { api } = await limiterOf(local);
    for (const forMs of [0, -1, Number.NaN, '60', undefined, [], [1, 0], Array.from({ length: 33 }, () => 1), 1e15]) {
      await expect(api.block('k', forMs as number), String(forMs)).rejects.toMatchObject({
        code: 'HEADGATE_INVALID_OPTION',
      });
    }
    await expect(api.block('k', 1, { forgetAfterMs: 5 })).rejects.toThrow('for a single one');
    await expect(api.block('k', [1], { forgetAfter: 5 } as never)).rejects.toThrow('forgetAfterMs');
    await expect(api.block('', 1)).rejects.toMatchObject({ code: 'HEADGATE_INVALID_KEY' });
    expect(api.tryAcquire('k')).toBe(true);
  });
});

describe('a fleet whose store is elsewhere', () => {
  it('hears of blocks and of what lifts them the next time it asks', async () => {
    const { time, instances } = await remoteFleetOf(2);
    const [a, b] = instances.map(({ api }) => api) as [PolicyLimiter, PolicyLimiter];
    const blocking = a.block('k', MINUTE);
    expect(a.tryAcquire('k')).toBe(false);
    await time.advance(1_200);
    expect(await blocking).toMatchObject({ forMs: MINUTE });
    expect(denied(b.decide('k')).retryAfterMs).toBeLessThanOrEqual(MINUTE);
    void b.unblock('k');
    expect(b.tryAcquire('k')).toBe(true);
    await time.advance(1_200);
    expect(a.tryAcquire('k')).toBe(true);
  });

  it('is told what is blocked before a new instance decides anything', async () => {
    const { time, inner, instances } = await remoteFleetOf(1);
    const keys = Array.from({ length: 600 }, (_, i) => `k${i}`);
    for (const key of keys) void instances[0]?.api.block(key, MINUTE);
    await time.advance(20);
    const remote = new RemoteCeiling(time, 5, inner).withMarks();
    const { api } = await started(remoteLimiterOf(local, { time, remote }), time);
    expect(keys.filter((key) => api.tryAcquire(key))).toEqual([]);
  });

  it('blocks here though the store can not be told, says so, and keeps what it knows', async () => {
    const { time, instances } = await remoteFleetOf(1);
    const [{ api, remote, troubles }] = instances as [(typeof instances)[0]];
    remote.fate = 'lose-reply';
    const blocking = api.block('k', [MINUTE, 5 * MINUTE]).catch((error: Error) => error);
    await time.advance(150);
    expect(await blocking).toMatchObject({ code: 'HEADGATE_CEILING' });
    expect(String(await blocking)).toContain('The block holds in this instance only');
    expect(api.tryAcquire('k')).toBe(false);
    await time.advance(5_000);
    // Told once, however often it is asked.
    expect(troubles).toHaveLength(1);
    remote.ready = false;
    await expect(api.unblock('k')).rejects.toThrow('in this instance only');
    expect(api.tryAcquire('k')).toBe(true);
  });

  it('keeps a block that the store has lost, to its end', async () => {
    const { time, inner, instances } = await remoteFleetOf(2);
    const [a, b] = instances.map(({ api }) => api) as [PolicyLimiter, PolicyLimiter];
    void a.block('k', 10_000);
    await time.advance(1_200);
    inner.lose();
    await time.advance(2_000);
    expect([a.tryAcquire('k'), b.tryAcquire('k')]).toEqual([false, false]);
    void b.unblock('k');
    await time.advance(1_200);
    expect([a.tryAcquire('k'), b.tryAcquire('k')]).toEqual([true, true]);
  });
});

describe('a reset', () => {
  it('makes the local tier of every instance full, lifts a block, and touches no other key (C172)', async () => {
    const { time, instances } = await remoteFleetOf(2);
    const [a, b] = instances.map(({ api }) => api) as [PolicyLimiter, PolicyLimiter];
    for (const api of [a, b]) for (const key of ['k', 'other']) expect(api.tryAcquire(key, 5)).toBe(true);
    void a.block('k', MINUTE);
    await time.advance(20);
    void a.reset('k');
    expect(a.tryAcquire('k', 5)).toBe(true);
    await time.advance(1_200);
    // Once, and not again when its own news comes back.
    expect(a.tryAcquire('other', 5)).toBe(true);
    expect(a.decide('k')).toMatchObject({ allowed: true, remaining: 4 });
    expect(b.tryAcquire('k', 5)).toBe(true);
  });

  it('fills the ceiling for the whole fleet: nobody holds on to what was said of the empty bucket', async () => {
    const { time, instances } = await remoteFleetOf(2, { ceiling: { rate: 1, per: '1h', burst: 20 } });
    const [a, b] = instances.map(({ api }) => api) as [PolicyLimiter, PolicyLimiter];
    const drained = [a.acquire('k', { cost: 10 }), b.acquire('k', { cost: 10 })];
    await time.advance(3_000);
    for (const decision of await Promise.all(drained)) expect(decision.allowed).toBe(true);
    const empty = [a.acquire('k'), b.acquire('k')];
    await time.advance(50);
    for (const decision of await Promise.all(empty)) expect(decision.allowed).toBe(false);
    const waiting = b.acquire('k', { cost: 10, maxWaitMs: Number.POSITIVE_INFINITY });

    const resetting = a.reset('k');
    await time.advance(1_200);
    await resetting;
    expect(await soFar(waiting)).toMatchObject({ allowed: true });
    const rest = a.acquire('k', { cost: 10, maxWaitMs: 5_000 });
    await time.advance(5_000);
    expect(await rest).toMatchObject({ allowed: true });
    const over = [a.acquire('k'), b.acquire('k')];
    await time.advance(50);
    for (const decision of await Promise.all(over)) expect(decision.allowed).toBe(false);
  });

  it('fills a ceiling in this process at once, and forgets what is owed', async () => {
    const { api } = await limiterOf({ ceiling: { rate: 1, per: '1h', burst: 5 } }, { maxKeys: 1 });
    penalise(api, 'k', 8);
    expect(api.tryAcquire('k')).toBe(false);
    await api.reset('k');
    expect(api.tryAcquire('k', 5)).toBe(true);
    expect(api.tryAcquire('k')).toBe(false);
    // Also of a key that has no place.
    expect(api.tryAcquire('other')).toBe(true);
    await api.reset('another');
    expect(api.tryAcquire('another', 5)).toBe(true);
  });

  it('says so where the store does not hear of it, and has made the local tier full all the same', async () => {
    const { time, instances } = await remoteFleetOf(1, { ...local, ceiling: { rate: 10, burst: 20 } });
    const [{ api, remote }] = instances as [(typeof instances)[0]];
    const drained = api.acquire('k', { cost: 5 });
    await time.advance(20);
    expect((await drained).allowed).toBe(true);
    remote.fate = 'lose-call';
    const resetting = api.reset('k').catch((error: Error) => error);
    await time.advance(300);
    expect(await resetting).toMatchObject({ code: 'HEADGATE_CEILING' });
    expect(peek(api, 'k', 5)).not.toMatchObject({ limitedBy: 'local' });
  });
});
