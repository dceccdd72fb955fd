import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CeilingStore, LeaseCall, LeaseReply } from '../../../src/ceiling/ceiling-store.js';
import { MemoryCeiling, storeClock } from '../../../src/ceiling/memory-ceiling.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import type { PolicySource } from '../../../src/policy/policy-source.js';
import type { Observer } from '../../../src/telemetry/observer.js';
import { ManualTime } from '../../../src/testing.js';
import { allowed, closed, limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';

const ceiling = { rate: 10, burst: 10 };
const unhandled: unknown[] = [];
const note = (reason: unknown) => unhandled.push(reason);

beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', note);
});
afterEach(async () => {
  // Rejections count as unhandled once the microtasks of their turn have run.
  await new Promise(setImmediate);
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});

function storeThat(broken: Partial<CeilingStore>, time: ManualTime): CeilingStore {
  const inner = new MemoryCeiling({ clock: storeClock(time) });
  return {
    ready: true,
    lease: (calls) => inner.lease(calls),
    heartbeat: (group, holder) => inner.heartbeat(group, holder),
    close: () => inner.close(),
    ...broken,
  };
}

describe('a store that', () => {
  const explode = (): never => {
    throw new Error('a bug in the store');
  };
  /** Breaks what takes it when that is half done. */
  const breaksOff = (call: LeaseCall): LeaseReply => ({
    status: 'granted',
    seq: call.seq,
    now: 1,
    get era() {
      return explode();
    },
    version: 0,
    burst: call.burst,
    rateNum: call.rateNum,
    rateDen: call.rateDen,
    granted: call.need + call.want,
    lease: 0,
    level: 0,
    horizon: 0,
    next: 0,
    retry: 0,
    giveBack: false,
    conflict: false,
    incarnation: 1,
    certainUntil: 1,
  });
  const broken: [string, Partial<CeilingStore>][] = [
    ['throws instead of rejecting', { lease: explode }],
    ['rejects with no error', { lease: (calls) => calls.map(() => Promise.reject(undefined)) }],
    ['answers nonsense', { lease: (calls) => calls.map(() => Promise.resolve(undefined as never)) }],
    ['breaks off in its answer', { lease: (calls) => calls.map((call) => Promise.resolve(breaksOff(call))) }],
    ['answers in this process, and breaks off', { leaseNow: breaksOff }],
    ['answers nothing at all', { lease: () => [] }],
    ['throws at the heartbeat', { heartbeat: explode }],
    ['rejects the heartbeat', { heartbeat: () => Promise.reject(new Error('no')) }],
    ['never answers the heartbeat', { heartbeat: () => new Promise(() => {}) }],
    ['answers the heartbeat with nonsense', { heartbeat: async () => Number.NaN }],
    ['throws at close', { close: explode }],
    ['answers in this process, and throws', { leaseNow: explode, leftNow: explode }],
    ['answers in this process, with nonsense', { leaseNow: () => ({}) as never }],
  ];

  it.each(broken)('%s does no harm', async (_name, methods) => {
    const time = new ManualTime(1_000);
    const { api, limiter } = await limiterOf({ ceiling }, { time, ceiling: storeThat(methods, time) });
    for (let i = 0; i < 30; i++) {
      expect(typeof api.tryAcquire('k')).toBe('boolean');
      api.decide(`k${i}`);
      void api.acquire('k', { maxWaitMs: 100 });
      void api.acquire(`a${i}`);
      await time.advance(300);
    }
    await time.advance(15_000);
    await closed(limiter, time);
    expect(limiter.stats()[0]?.waiting).toBe(0);
    expect(time.pending).toBe(0);
  });

  it('whose heartbeat never answers is asked again', async () => {
    let beats = 0;
    const time = new ManualTime(1_000);
    const store = storeThat(
      {
        heartbeat: () => {
          beats += 1;
          return new Promise(() => {});
        },
      },
      time,
    );
    await limiterOf({ ceiling }, { time, ceiling: store });
    await time.advance(60_000);
    expect(beats).toBeGreaterThan(5);
  });
});

describe('an observer that throws', () => {
  it('harms nothing, wherever it does', async () => {
    const angry = new Proxy({} as Observer, {
      get: () => () => {
        throw new Error('a bug in the observer');
      },
    });
    const warning = new Promise((resolve) => process.once('warning', resolve));
    const { api, limiter, time, remote } = await remoteLimiterOf({ ceiling }, { observer: angry });
    const waiting = api.acquire('k');
    await time.advance(20);
    allowed(await soFar(waiting));
    remote.ready = false;
    api.tryAcquire('other');
    await time.advance(1);
    api.tryAcquire('other');
    await closed(limiter, time);
    expect(String(((await warning) as Error).message)).toContain('observer');
  });

  it('may be an object of a class with private fields', async () => {
    class Mine {
      #troubles = 0;
      #waits = 0;
      get seen() {
        return [this.#troubles, this.#waits];
      }
      roundTrip(_start: unknown, send: () => void) {
        send();
        return () => {};
      }
      policyChanged() {}
      degradedChanged() {}
      watchesDenials() {
        return this.#troubles >= 0;
      }
      denied() {}
      waiting() {
        this.#waits += 1;
        return () => {};
      }
      trouble() {
        this.#troubles += 1;
      }
      inject() {
        return {};
      }
      attach() {
        return () => {};
      }
    }
    const observer = new Mine();
    const policySource = {
      watch: async (listener: { trouble(error: Error): void }) => listener.trouble(new Error('just saying')),
      list: async () => [],
      publish: async () => {},
      close: async () => {},
    };
    const { api, time, troubles } = await remoteLimiterOf({ ceiling }, { observer, policySource });
    void api.acquire('k');
    await time.advance(20);
    expect(observer.seen).toEqual([1, 1]);
    expect(troubles.map(({ message }) => message)).toEqual(['just saying']);
  });
});

describe('a policy source that', () => {
  const good = (): PolicySource => ({
    watch: async () => {},
    list: async () => [],
    publish: async () => {},
    close: async () => {},
  });

  it('can not be read again is reported, and the limiter goes on', async () => {
    for (const list of [
      () => Promise.reject(new Error('away')),
      (): never => {
        throw new Error('away');
      },
      async () => [{ name: 'api', nonsense: true } as never],
    ]) {
      const policySource = { ...good(), list };
      const options = { policySource };
      const { api, time, remote, troubles } = await remoteLimiterOf({ version: 1, ceiling }, options);
      void api.acquire('k');
      await time.advance(1);
      const [call] = remote.calls;
      remote.inner.leaseNow({ ...(call as NonNullable<typeof call>), holder: 'other', version: 5, need: 0, head: 0 });
      await time.advance(20);
      expect(troubles.length + 1).toBeGreaterThan(0);
      expect(api.policy.version).toBe(1);
      const again = api.acquire('k');
      await time.advance(30);
      allowed(await soFar(again));
    }
  });

  it('fails to close does not keep the store open', async () => {
    const policySource = { ...good(), close: () => Promise.reject(new Error('stuck')) };
    const { limiter, time, remote, troubles } = await remoteLimiterOf({ ceiling }, { policySource });
    await closed(limiter, time);
    expect(remote.closed).toBe(1);
    expect(troubles.map(({ message }) => message)).toEqual(['stuck']);
  });

  it('rejects the watch makes createLimiter reject, with everything closed again', async () => {
    const time = new ManualTime();
    const policySource = { ...good(), watch: () => Promise.reject(new Error('never')) };
    let closes = 0;
    const ceilingStore = storeThat(
      {
        close: async () => {
          closes += 1;
        },
      },
      time,
    );
    await expect(
      limiterOf({ ceiling }, { time, policySource, ceiling: ceilingStore } as Partial<LimiterOptions> & {
        time: ManualTime;
      }),
    ).rejects.toThrow('never');
    expect(closes).toBe(1);
    expect(time.pending).toBe(0);
  });
});

it('a trouble listener that throws harms nothing', async () => {
  const policySource = {
    watch: async (listener: { trouble(error: Error): void }) => listener.trouble(new Error('x')),
    list: async () => [],
    publish: async () => {},
    close: async () => {},
  };
  const { api } = await limiterOf(
    { ceiling },
    {
      policySource,
      onTrouble: () => {
        throw new Error('a bug in the listener');
      },
    },
  );
  expect(api.tryAcquire('k')).toBe(true);
});

it('a denial is an answer and never a rejection, so a promise nobody awaits is no unhandled rejection (C181)', async () => {
  const { api } = await limiterOf({ local: { rate: 1, burst: 1 } });
  for (let i = 0; i < 5; i++) void api.acquire('k');
});
