import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLimiter } from '../../../src/create-limiter.js';
import type { Decision } from '../../../src/limiter/decision.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import type { PolicyLimiter } from '../../../src/limiter/policy-limiter.js';
import { SLOT_LASTS_MS } from '../../../src/pace/pacer.js';
import { memoryPolicySource } from '../../../src/policy/memory-source.js';
import type { PolicyDocument } from '../../../src/policy/policy.js';
import { ManualTime } from '../../../src/testing.js';
import { peek, upTo } from '../../../src/verb/one-limit.js';
import { acquireAll, decideAll } from '../../../src/verb/several.js';
import { allowed, closed, denied, limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';
import { RemoteCeiling } from '../../support/remote-ceiling.js';

/** Ten a second; five may wait. */
const ceiling = { algorithm: 'leaky-bucket', rate: 10, queue: 5 } as const;

/** When each of the calls was let pass, on the limiter's clock; those denied are left out. */
async function departures(time: ManualTime, calls: readonly Promise<Decision>[], forMs: number): Promise<number[]> {
  const times: number[] = [];
  for (const call of calls) {
    call.then(
      (decision) => decision.allowed && times.push(time.now()),
      () => {},
    );
  }
  await time.advance(forMs);
  return times;
}

/** Numbers that no other instance draws. */
function randomOf(seed: number): () => number {
  return () => seed / 64;
}

describe('a ceiling that is a leaky bucket', () => {
  it('lets the requests of all instances leave evenly, and denies who would be more than its queue', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling });
    const other = await remoteLimiterOf({ ceiling }, { time, remote, random: () => 0.7 });
    const calls = Array.from({ length: 9 }, (_, i) => (i % 2 ? other.api : api).acquire('k'));
    const times = await departures(time, calls, 1_000);
    expect(times).toHaveLength(6);
    for (let i = 1; i < times.length; i++) {
      expect((times[i] ?? 0) - (times[i - 1] ?? 0)).toBeGreaterThan(99 - 11);
    }
    const refused = (await Promise.all(calls)).filter((decision) => !decision.allowed);
    expect(refused).toHaveLength(3);
    for (const decision of refused) {
      expect(decision).toMatchObject({ reason: 'queue-full', limit: 5 });
      expect(denied(decision).retryAfterMs).toBeGreaterThanOrEqual(90);
    }
    const again = api.acquire('k');
    await time.advance(200);
    expect(allowed(await soFar(again)).allowed).toBe(true);
  });

  it('is nothing that can be had without waiting: who does not wait is told so (C170)', async () => {
    const { api, limiter } = await remoteLimiterOf({ ceiling });
    expect(api.tryAcquire('k')).toBe(false);
    for (const decision of [api.decide('k'), peek(api, 'k'), upTo(api, 'k', 3)]) {
      expect(decision).toMatchObject({
        allowed: false,
        limitedBy: 'ceiling',
        reason: 'paced',
        retryAfterMs: undefined,
      });
    }
    const limits = [{ policy: 'api', key: 'k' }];
    expect(decideAll(limiter, limits)).toMatchObject({ allowed: false, denied: { reason: 'paced' } });
    expect(await acquireAll(limiter, limits, { maxWaitMs: 10_000 })).toMatchObject({ denied: { reason: 'paced' } });
    expect(limiter.stats()[0]).toMatchObject({ deniedCeiling: 5, deniedPolicy: 0 });
  });

  it('refuses at once who can’t leave in time, and takes no slot for one of whom it knows that', async () => {
    const { api, time, remote } = await remoteLimiterOf({ ceiling });
    const first = [api.acquire('k'), api.acquire('k'), api.acquire('k')];
    await time.advance(30);
    const calls = remote.paceCalls.length;
    const hurried = denied(await soFar(api.acquire('k', { maxWaitMs: 100 })));
    expect(hurried).toMatchObject({ reason: 'empty', limitedBy: 'ceiling' });
    expect(remote.paceCalls).toHaveLength(calls);
    const again = api.acquire('k', { maxWaitMs: hurried.retryAfterMs ?? 0 });
    await time.advance(1_000);
    expect((await Promise.all([...first, again])).every((decision) => decision.allowed)).toBe(true);
  });

  it('gives the slot of one that gives up to those behind it, who all move up', async () => {
    const { api, time } = await remoteLimiterOf({ ceiling, local: { rate: 1, burst: 100 } });
    const abort = new AbortController();
    const [now, gone] = [api.acquire('k'), api.acquire('k', { signal: abort.signal })];
    const behind = [api.acquire('k'), api.acquire('k')];
    await time.advance(50);
    abort.abort(new Error('gone'));
    await expect(gone).rejects.toThrow('gone');
    const times = await departures(time, behind, 170);
    expect(times).toHaveLength(2);
    expect(allowed(await now).allowed).toBe(true);
    // And the last one's is there for the next who comes.
    const next = api.acquire('k');
    await time.advance(100);
    expect(allowed(await soFar(next)).remaining).toBe(0);
    expect(peek(api, 'k').limit).toBe(5);
  });

  it('charges the local tier when a caller leaves, and not before', async () => {
    const { api, time } = await remoteLimiterOf({ ceiling, local: { rate: 1, burst: 3 } });
    const calls = [api.acquire('k'), api.acquire('k'), api.acquire('k'), api.acquire('k')];
    const times = await departures(time, calls, 700);
    expect(times).toHaveLength(3);
    await time.advance(1_000);
    expect((await Promise.all(calls)).every((decision) => decision.allowed)).toBe(true);
    expect(denied(await soFar(api.acquire('k', { maxWaitMs: 100 }))).limitedBy).toBe('local');
  });

  it.each([
    ['deny', { allowed: false, reason: 'degraded', degraded: true }],
    ['allow', { allowed: true, degraded: true }],
  ] as const)('does without its store what the outage mode %s says, and comes back to it', async (mode, outcome) => {
    const { api, time, remote, limiter } = await remoteLimiterOf({ ceiling, outage: { mode } });
    remote.fate = 'lose-call';
    for (let i = 0; i < 5; i++) {
      const call = api.acquire('k');
      await time.advance(101);
      expect(await soFar(call)).toMatchObject(outcome);
    }
    expect(limiter.stats()[0]?.degraded).toBe(true);
    // One tries; nobody waits for that.
    void api.acquire('k');
    expect(await soFar(api.acquire('k'))).toMatchObject(outcome);
    remote.fate = 'answer';
    await time.advance(3_000);
    const call = api.acquire('k');
    await time.advance(50);
    expect(await soFar(call)).toMatchObject({ allowed: true, degraded: false });
    expect(limiter.stats()[0]?.degraded).toBe(false);
  });

  it('never holds up what a shadow policy lets pass, and says what it would have done', async () => {
    const { api, time } = await remoteLimiterOf({ ceiling, mode: 'shadow' });
    const calls = Array.from({ length: 8 }, () => api.acquire('k'));
    const times = await departures(time, calls, 50);
    expect(times).toHaveLength(8);
    const shadows = (await Promise.all(calls)).map((decision) => allowed(decision).shadow?.reason);
    expect(shadows).toEqual([...Array(6).fill(undefined), 'queue-full', 'queue-full']);
  });

  it('lets those who wait go on under other terms, and those who wait for others wait for its slots', async () => {
    const source = memoryPolicySource([{ name: 'api', version: 1, ceiling }]);
    const { api, time } = await remoteLimiterOf({ version: 1, ceiling }, { policySource: source });
    const first = Array.from({ length: 6 }, () => api.acquire('k'));
    await time.advance(50);
    await source.publish({ name: 'api', version: 2, ceiling: { rate: 1, per: '1h', burst: 2 } }, 1);
    await time.advance(200);
    // The one that left, and two of the new burst.
    const left = await Promise.all(first.map(soFar));
    expect(left.filter((decision) => decision !== 'pending' && decision.allowed)).toHaveLength(3);
    const waits = api.acquire('k', { maxWaitMs: 7_200_000 });
    await time.advance(100);
    await source.publish({ name: 'api', version: 3, ceiling }, 2);
    await time.advance(200);
    expect(allowed(await soFar(waits)).policyVersion).toBe(3);
  });

  it('answers who waits when it is closed, and leaves no timer', async () => {
    const { api, time, limiter } = await limiterOf({ ceiling });
    const calls = [api.acquire('k'), api.acquire('k'), api.acquire('k', { maxWaitMs: 10_000 })];
    await time.advance(5);
    await closed(limiter, time);
    expect((await Promise.all(calls)).map((decision) => !decision.allowed && decision.reason)).toEqual([
      false,
      'closed',
      'closed',
    ]);
    expect(time.pending).toBe(0);
  });

  it('holds its bound on those who wait here', async () => {
    const { api, time } = await remoteLimiterOf({ ceiling });
    const calls = [api.acquire('k'), api.acquire('k', { maxQueued: 2 })];
    expect(denied(await soFar(api.acquire('k', { maxQueued: 2 }))).reason).toBe('queue-full');
    await time.advance(500);
    expect((await Promise.all(calls)).every((decision) => decision.allowed)).toBe(true);
  });

  const step = fc.record({
    who: fc.nat(2),
    what: fc.constantFrom('ask', 'ask', 'ask', 'hurry', 'abort', 'stall', 'lose', 'answer', 'crash'),
    cost: fc.constantFrom(1, 1, 2, 3),
    passes: fc.constantFrom(0, 1, 20, 100, 400),
  });

  it('keeps departures cost ÷ rate apart over the fleet, less what a slot lasts, whatever is lost', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const time = new ManualTime(1_000);
        const remote = new RemoteCeiling(time);
        const documents: PolicyDocument[] = [{ name: 'api', ceiling, local: { rate: 1_000, burst: 1_000 } }];
        let joined = 0;
        const join = () =>
          createLimiter({
            policies: documents,
            ceiling: remote,
            time,
            telemetry: false,
            // Each has an identity of its own.
            random: randomOf(++joined),
          } as LimiterOptions<never, never>);
        const limiters = await Promise.all([join(), join(), join()]);
        const left: { at: number; cost: number }[] = [];
        const aborts: AbortController[] = [];
        for (const { who, what, cost, passes } of steps) {
          const api = limiters[who]?.policy('api') as PolicyLimiter;
          if (what === 'ask' || what === 'hurry') {
            const abort = new AbortController();
            aborts.push(abort);
            const maxWaitMs = what === 'hurry' ? { maxWaitMs: 150 } : {};
            api.acquire('k', { cost, signal: abort.signal, ...maxWaitMs }).then(
              (decision) => decision.allowed && left.push({ at: time.now(), cost }),
              () => {},
            );
          } else if (what === 'abort') aborts.shift()?.abort(new Error('gone'));
          else if (what === 'stall') time.stall(passes);
          else if (what === 'lose') remote.fate = passes > 50 ? 'lose-reply' : 'lose-call';
          else if (what === 'answer') remote.fate = 'answer';
          else {
            // Its calls may still arrive; what they reserve nobody uses.
            void limiters[who]?.close();
            limiters[who] = await join();
          }
          await time.advance(passes);
        }
        await time.advance(3_000);
        // From one departure to any later one: what left before the last of them took its time.
        for (let i = 0; i < left.length; i++) {
          let took = 0;
          for (let j = i + 1; j < left.length; j++) {
            took += ((left[j - 1]?.cost ?? 0) / 10) * 1_000;
            // The way back of an answer, and a wake-up, make one late; a slot lasts so long after that.
            expect((left[j]?.at ?? 0) - (left[i]?.at ?? 0)).toBeGreaterThanOrEqual(took - SLOT_LASTS_MS - 20);
          }
        }
        for (const limiter of limiters) await closed(limiter, time);
      }),
      { numRuns: 40 },
    );
  }, 30_000);
});
