import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EnterOptions } from '../../../src/limiter/acquire-options.js';
import type { Seat } from '../../../src/seat/seat.js';
import { ManualTime, memoryPolicySource } from '../../../src/testing.js';
import { limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';
import { RemoteCeiling } from '../../support/remote-ceiling.js';

const policy = { concurrency: { limit: 2, lostAfterMs: 3_000 } };

/** One of several: chance tells their identities apart. */
const instance = (
  document: Parameters<typeof remoteLimiterOf>[0],
  n: number,
  time: ManualTime,
  remote: RemoteCeiling,
) => remoteLimiterOf(document, { time, remote, random: () => 0.3 + n / 10 });

/** Two instances on one clock, their ceiling a round trip of 10 ms away. */
async function pair(document: Parameters<typeof remoteLimiterOf>[0] = policy) {
  const time = new ManualTime(1_000);
  const remote = new RemoteCeiling(time);
  const [a, b] = [await instance(document, 0, time, remote), await instance(document, 1, time, remote)];
  return { time, remote, a: a.api, b: b.api, first: a, second: b };
}

const taken = (seat: Seat | 'pending') => (seat === 'pending' ? seat : seat.allowed ? 'seat' : seat.reason);

describe('seats in this process', () => {
  it('of a blocked key are for those who outwait that, and come free and are renewed meanwhile', async () => {
    const { api, time } = await limiterOf({ concurrency: { limit: 1, lostAfterMs: 1_000 } });
    const first = await api.enter('k');
    const [early, late] = [api.enter('k', { maxWaitMs: 2_000 }), api.enter('k', { maxWaitMs: 9_000 })];
    await api.block('k', 5_000);
    expect(taken(await soFar(early))).toBe('blocked');
    expect(taken(await api.enter('k'))).toBe('blocked');
    expect(taken(await api.enter('k', { maxWaitMs: 4_000 }))).toBe('blocked');
    const later = api.enter('k', { maxWaitMs: 9_000 });
    await time.advance(4_000);
    first.release();
    await time.advance(999);
    expect(await soFar(late)).toBe('pending');
    await time.advance(2);
    expect(taken(await soFar(late))).toBe('seat');
    (await late).release();
    expect(taken(await soFar(later))).toBe('seat');
  });

  it('are there for who waits as soon as a block is lifted', async () => {
    const { api, time } = await limiterOf({ concurrency: { limit: 1 } });
    await api.block('k', Number.POSITIVE_INFINITY);
    expect(taken(await api.enter('k', { maxWaitMs: Number.POSITIVE_INFINITY }))).toBe('blocked');
    await api.unblock('k');
    await api.block('k', 60_000);
    const waits = api.enter('k', { maxWaitMs: 60_000 });
    await time.advance(10_000);
    expect(await soFar(waits)).toBe('pending');
    await api.unblock('k');
    await time.advance(10);
    expect(taken(await soFar(waits))).toBe('seat');
  });

  it('are counted: those taken, refused and in use', async () => {
    const { api, limiter } = await limiterOf({ concurrency: { limit: 2 } });
    const seats = [await api.enter('k'), await api.enter('k'), await api.enter('k'), await api.enter('another')];
    expect(limiter.stats()[0]).toMatchObject({ seats: 3, seatsTaken: 3, seatsRefused: 1, seatsShadowRefused: 0 });
    for (const seat of seats) seat.release();
    expect(limiter.stats()[0]).toMatchObject({ seats: 0, seatsTaken: 3 });
  });

  it('under a policy that shadows are counted too, and refused to nobody', async () => {
    const { api, limiter, time } = await limiterOf({ mode: 'shadow', concurrency: { limit: 1 } });
    const seats = [await api.enter('k'), await api.enter('k', { maxWaitMs: 60_000 }), await api.enter('k')];
    expect(seats.map(taken)).toEqual(['seat', 'seat', 'seat']);
    expect(limiter.stats()[0]).toMatchObject({ seats: 1, seatsTaken: 1, seatsRefused: 0, seatsShadowRefused: 2 });
    await api.block('k', 1_000);
    expect(taken(await api.enter('k'))).toBe('seat');
    expect(limiter.stats()[0]).toMatchObject({ seatsShadowRefused: 3 });
    for (const seat of seats) seat.release();
    await time.advance(1_001);
    await api.enter('k');
    expect(limiter.stats()[0]).toMatchObject({ seats: 1, seatsTaken: 2 });
  });

  it('are there up to the limit, and again once one is released', async () => {
    const { api } = await limiterOf(policy);
    const seats = [await api.enter('k'), await api.enter('k'), await api.enter('k')];
    expect(seats.map(taken)).toEqual(['seat', 'seat', 'full']);
    expect(taken(await api.enter('another'))).toBe('seat');
    seats[0]?.release();
    expect(taken(await api.enter('k'))).toBe('seat');
  });

  it('are released once, however often that is asked for, and at the end of a block that uses one', async () => {
    const { api, time } = await limiterOf({ concurrency: { limit: 1 } });
    const first = await api.enter('k');
    first.release();
    const second = await api.enter('k');
    expect(taken(second)).toBe('seat');
    first.release();
    first[Symbol.dispose]();
    expect(taken(await api.enter('k'))).toBe('full');
    second[Symbol.dispose]();
    await time.advance(1);
    expect(taken(await api.enter('k'))).toBe('seat');
  });

  it('go to those who wait in order, each when one comes free', async () => {
    const { api, time } = await limiterOf({ concurrency: { limit: 1 } });
    const first = await api.enter('k');
    const waiting = [1_000, 1_000, 5].map((maxWaitMs) => api.enter('k', { maxWaitMs }));
    await time.advance(10);
    expect(await Promise.all(waiting.map(async (seat) => taken(await soFar(seat))))).toEqual([
      'pending',
      'pending',
      'full',
    ]);
    first.release();
    expect(taken(await soFar(waiting[0] as Promise<Seat>))).toBe('seat');
    expect(await soFar(waiting[1] as Promise<Seat>)).toBe('pending');
    (await (waiting[0] as Promise<Seat>)).release();
    expect(taken(await soFar(waiting[1] as Promise<Seat>))).toBe('seat');
  });

  it('are not taken by one that stopped waiting', async () => {
    const { api } = await limiterOf({ concurrency: { limit: 1 } });
    const first = await api.enter('k');
    const abort = new AbortController();
    const gone = api.enter('k', { maxWaitMs: 1_000, signal: abort.signal });
    const stays = api.enter('k', { maxWaitMs: 1_000 });
    abort.abort(new Error('changed my mind'));
    await expect(gone).rejects.toThrow('changed my mind');
    await expect(api.enter('k', { signal: abort.signal })).rejects.toThrow('changed my mind');
    first.release();
    expect(taken(await soFar(stays))).toBe('seat');
  });

  it('are there for everybody where the policy counts none, shadows or allows, and for nobody where it denies', async () => {
    const limited = { concurrency: { limit: 1 } };
    for (const [document, expected] of [
      [{ local: { rate: 1, burst: 1 } }, 'seat'],
      [{ ...limited, mode: 'allow' as const }, 'seat'],
      [{ ...limited, mode: 'shadow' as const }, 'seat'],
      [{ ...limited, mode: 'deny' as const }, 'denied-by-policy'],
    ] as const) {
      const { api } = await limiterOf(document);
      expect([taken(await api.enter('k')), taken(await api.enter('k'))]).toEqual([expected, expected]);
    }
  });

  it('answer whoever waits when the limiter closes, and are refused after that', async () => {
    const { api, limiter, time } = await limiterOf({ concurrency: { limit: 1 } });
    await api.enter('k');
    const waits = api.enter('k', { maxWaitMs: 60_000 });
    const closing = limiter.close();
    expect(taken(await waits)).toBe('closed');
    await time.advance(200);
    await closing;
    expect(taken(await api.enter('k'))).toBe('closed');
    expect(time.pending).toBe(0);
  });

  it('leave nothing behind', async () => {
    const { api, time } = await limiterOf(policy);
    for (let i = 0; i < 100; i++) {
      const seat = await api.enter(`k${i}`);
      await api.enter(`k${i}`);
      await api.enter(`k${i}`);
      seat.release();
    }
    await time.advance(100);
    expect(time.pending).toBeLessThanOrEqual(1);
  });

  it.each([
    ['', {}, 'HEADGATE_INVALID_KEY'],
    ['k', { maxWaitMs: -1 }, 'HEADGATE_INVALID_OPTION'],
    ['k', { cost: 1 }, 'HEADGATE_INVALID_OPTION'],
  ])('refuse the key %j with %j by %s', async (key, options, code) => {
    const { api } = await limiterOf(policy);
    await expect(api.enter(key, options as EnterOptions)).rejects.toMatchObject({ code });
  });
});

describe('seats of a fleet', () => {
  it('are as many as the limit over all instances', async () => {
    const { a, b, time, remote } = await pair();
    const seats = [a.enter('k'), b.enter('k'), a.enter('k'), b.enter('k')];
    await time.advance(10);
    expect(await Promise.all(seats.map(async (seat) => taken(await seat)))).toEqual(['seat', 'full', 'seat', 'full']);
    // All that one instance asked for in one tick was one call.
    expect(remote.seatCalls).toHaveLength(2);
    (await (seats[0] as Promise<Seat>)).release();
    await time.advance(5);
    const next = b.enter('k');
    expect(taken(await soFar(next))).toBe('full');
    await time.advance(100);
    const later = b.enter('k');
    await time.advance(10);
    expect(taken(await soFar(later))).toBe('seat');
  });

  it('come to one that waits elsewhere within a poll of being released', async () => {
    const { a, b, time } = await pair({ concurrency: { limit: 1 } });
    const first = a.enter('k');
    await time.advance(10);
    const waits = b.enter('k', { maxWaitMs: 10_000 });
    await time.advance(1_000);
    expect(await soFar(waits)).toBe('pending');
    (await first).release();
    await time.advance(100);
    expect(taken(await soFar(waits))).toBe('seat');
  });

  it('are shared: an instance that always has somebody waiting gives back what is more than its share', async () => {
    const { a, b, time } = await pair({ concurrency: { limit: 4 } });
    let served = 0;
    const worker = async (): Promise<void> => {
      for (;;) {
        const seat = await a.enter('k', { maxWaitMs: 60_000 });
        if (!seat.allowed) return;
        served += 1;
        await new Promise<void>((resolve) => time.after(20, resolve));
        seat.release();
      }
    };
    for (let i = 0; i < 12; i++) void worker();
    await time.advance(200);
    const waits = [b.enter('k', { maxWaitMs: 5_000 }), b.enter('k', { maxWaitMs: 5_000 })];
    await time.advance(1_000);
    expect(await Promise.all(waits.map(async (seat) => taken(await soFar(seat))))).toEqual(['seat', 'seat']);
    const before = served;
    await time.advance(1_000);
    expect(served - before).toBeGreaterThan(60);
  });

  it('of an instance that is gone come free once it has not been heard of for long enough, and no sooner', async () => {
    const { a, b, time, remote } = await pair();
    const held = [a.enter('k'), a.enter('k')];
    await time.advance(10);
    expect(await Promise.all(held.map(async (seat) => taken(await seat)))).toEqual(['seat', 'seat']);
    // Seats that are still in use are renewed for as long as their instance lives.
    await time.advance(20_000);
    const refused = b.enter('k');
    await time.advance(10);
    expect(taken(await refused)).toBe('full');
    const renewals = remote.seatCalls.filter(({ held }) => held === 2).length;
    expect(renewals).toBeGreaterThanOrEqual(18);
    expect(renewals).toBeLessThanOrEqual(24);

    remote.fate = 'lose-call';
    await time.advance(2_500);
    remote.fate = 'answer';
    // It comes back in time, and its seats were never free.
    await time.advance(200);
    const still = b.enter('k');
    await time.advance(10);
    expect(taken(await still)).toBe('full');
  });

  it('of one that crashed are free after the time that the policy says', async () => {
    const { a, b, time, first } = await pair();
    a.enter('k').catch(() => {});
    await time.advance(10);
    // Closed with a seat in use: it is never heard of again, as one that crashed.
    const closing = first.limiter.close();
    await time.advance(200);
    await closing;
    const two = [b.enter('k'), b.enter('k')];
    await time.advance(10);
    expect(await Promise.all(two.map(async (seat) => taken(await seat)))).toEqual(['seat', 'full']);
    await time.advance(3_100);
    const next = b.enter('k');
    await time.advance(10);
    expect(taken(await next)).toBe('seat');
  });

  it('are never more than the limit where replies are lost or late: what a lost reply granted is not used', async () => {
    const { a, b, time, remote } = await pair();
    remote.fate = 'lose-reply';
    const lost = a.enter('k');
    await time.advance(150);
    expect(taken(await lost)).toBe('degraded');
    remote.fate = 'answer';
    await time.advance(100);
    // It says at once what it really holds, so nothing stays taken for nobody.
    const seats = [b.enter('k'), b.enter('k'), b.enter('k')];
    await time.advance(10);
    expect(await Promise.all(seats.map(async (seat) => taken(await seat)))).toEqual(['seat', 'seat', 'full']);
    void a;
  });

  it.each([
    ['deny' as const, ['degraded', 'degraded', 'degraded']],
    ['allow' as const, ['seat', 'seat', 'seat']],
    ['share' as const, ['seat', 'seat', 'degraded']],
  ])('are decided by the outage mode %s while the store does not answer', async (mode, expected) => {
    const { a, time, remote } = await pair({ concurrency: { limit: 4 }, outage: { mode, fleet: 2 } });
    remote.ready = false;
    const seats = [a.enter('k'), a.enter('k'), a.enter('k')];
    await time.advance(10);
    expect(await Promise.all(seats.map(async (seat) => taken(await soFar(seat))))).toEqual(expected);
    remote.ready = true;
    await time.advance(200);
    if (mode === 'allow') expect(remote.seatCalls.at(-1)).toMatchObject({ held: 3 });
  });

  it('follow the policy that is published: more of them let in who waits', async () => {
    const time = new ManualTime(1_000);
    const remote = new RemoteCeiling(time);
    const policySource = memoryPolicySource();
    const { limiter, api } = await remoteLimiterOf({ concurrency: { limit: 1 } }, { time, remote, policySource });
    const first = api.enter('k');
    await time.advance(10);
    const waits = api.enter('k', { maxWaitMs: 60_000 });
    await time.advance(500);
    expect(taken(await soFar(waits))).toBe('pending');
    await limiter.policies.publish({ name: 'api', concurrency: { limit: 2 } });
    await time.advance(200);
    expect(taken(await soFar(waits))).toBe('seat');
    await limiter.policies.publish({ name: 'api', local: { rate: 1, burst: 1 } });
    await time.advance(200);
    expect(taken(await soFar(api.enter('k')))).toBe('seat');
    (await first).release();
  });
});

it('no more than the limit is ever in flight, whatever instances do, while the store hears of them', async () => {
  const step = fc.record({
    who: fc.nat(2),
    what: fc.constantFrom('enter', 'enter', 'wait', 'release', 'release', 'abort'),
    passes: fc.constantFrom(0, 0, 3, 11, 40, 400),
    fate: fc.constantFrom(
      'answer' as const,
      'answer' as const,
      'answer' as const,
      'lose-reply' as const,
      'lose-call' as const,
    ),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      const time = new ManualTime(1_000);
      const remote = new RemoteCeiling(time);
      const limit = 3;
      const apis = await Promise.all(
        [0, 1, 2].map(
          async (n) => (await instance({ concurrency: { limit, lostAfterMs: 600_000 } }, n, time, remote)).api,
        ),
      );
      const inFlight: { who: number; seat: Seat }[] = [];
      const aborts: AbortController[] = [];
      let most = 0;
      for (const { who, what, passes, fate } of steps) {
        remote.fate = fate;
        const api = apis[who] as (typeof apis)[number];
        if (what === 'enter' || what === 'wait') {
          const abort = new AbortController();
          aborts.push(abort);
          const options = what === 'wait' ? { maxWaitMs: 2_000, signal: abort.signal } : { signal: abort.signal };
          api.enter('k', options).then(
            (seat) => {
              if (!seat.allowed) return;
              inFlight.push({ who, seat });
              most = Math.max(most, inFlight.length);
            },
            () => {},
          );
        } else if (what === 'release') {
          const [mine] = inFlight.filter((one) => one.who === who);
          if (mine) {
            inFlight.splice(inFlight.indexOf(mine), 1);
            mine.seat.release();
          }
        } else aborts.shift()?.abort(new Error('aborted'));
        await time.advance(passes);
      }
      expect(most).toBeLessThanOrEqual(limit);
      // In the end everything comes free again.
      remote.fate = 'answer';
      await time.advance(2_500);
      for (const { seat } of inFlight.splice(0)) seat.release();
      await time.advance(2_500);
      for (const { seat } of inFlight.splice(0)) seat.release();
      await time.advance(300);
      const all = Array.from({ length: limit + 1 }, () => (apis[0] as (typeof apis)[number]).enter('k'));
      await time.advance(10);
      expect((await Promise.all(all)).filter(({ allowed }) => allowed)).toHaveLength(limit);
    }),
    { numRuns: 60 },
  );
});
