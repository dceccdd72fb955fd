import { getEventListeners } from 'node:events';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { DeniedError } from '../../../src/verb/denied-error.js';
import { peek } from '../../../src/verb/one-limit.js';
import { schedule, wrap } from '../../../src/verb/schedule.js';
import { limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';

const tenASecond = { local: { rate: 10, burst: 2 } };

/** A call that ends when it is told to. */
function job<Result>() {
  let end: (result: Result | PromiseLike<Result>) => void = () => {};
  const ends = new Promise<Result>((resolve) => {
    end = resolve;
  });
  return { run: () => ends, end: (result: Result | PromiseLike<Result>) => end(result) };
}

describe('schedule', () => {
  it('calls each when its turn has come, in order, and answers what it does', async () => {
    const { api, time } = await limiterOf(tenASecond);
    const begun: [number, number][] = [];
    const calls = [1, 2, 3, 4, 5].map((n) =>
      schedule(api, 'k', () => {
        begun.push([n, time.now() - 1_000]);
        return n % 2 === 0 ? n : Promise.resolve(n);
      }),
    );
    await time.advance(1_000);
    expect(await Promise.all(calls)).toEqual([1, 2, 3, 4, 5]);
    expect(begun.map(([n]) => n)).toEqual([1, 2, 3, 4, 5]);
    expect(begun.map(([, at]) => Math.round(at))).toEqual([0, 0, 100, 200, 300]);
  });

  it('waits for a ceiling elsewhere without being told how long', async () => {
    const { api, time } = await remoteLimiterOf({ ceiling: { rate: 10, burst: 1 } });
    const calls = [1, 2, 3].map((n) => schedule(api, 'k', () => n));
    await time.advance(50);
    expect(await soFar(calls[0] as Promise<number>)).toBe(1);
    expect(await soFar(calls[2] as Promise<number>)).toBe('pending');
    await time.advance(400);
    expect(await soFar(Promise.all(calls))).toEqual([1, 2, 3]);
  });

  it('passes on what the call throws, at once or later', async () => {
    const { api } = await limiterOf(tenASecond);
    const failing = () => {
      throw new RangeError('at once');
    };
    await expect(schedule(api, 'k', failing)).rejects.toThrow('at once');
    await expect(schedule(api, 'k', async () => failing())).rejects.toThrow(RangeError);
    expect(peek(api, 'k').remaining).toBe(0);
  });

  it('rejects with the decision where the limit denies, and has then called nothing', async () => {
    const { api } = await limiterOf(tenASecond);
    let called = 0;
    const call = (options: object) => schedule(api, 'k', () => (called += 1), options);
    await Promise.all([call({}), call({})]);
    const refused = await call({ maxWaitMs: 50 }).catch((error) => error);
    expect(refused).toBeInstanceOf(DeniedError);
    expect(refused).toMatchObject({
      code: 'HEADGATE_DENIED',
      message: 'Expected "api" to let the call pass, got a denial: empty, for 100 ms.',
      decision: { allowed: false, reason: 'empty', limitedBy: 'local' },
      retryAfterMs: 100,
    });
    await expect(call({ maxQueued: 0 })).rejects.toMatchObject({ decision: { reason: 'queue-full' } });
    expect(called).toBe(2);
  });

  it('serves by priority', async () => {
    const { api, time } = await limiterOf({ local: { rate: 10, burst: 1 } });
    const begun: string[] = [];
    const call = (name: string, priority: number) => schedule(api, 'k', () => begun.push(name), { priority });
    const calls = [call('first', 0), call('low', -1), call('usual', 0), call('high', 1)];
    await time.advance(1_000);
    await Promise.all(calls);
    expect(begun).toEqual(['first', 'high', 'usual', 'low']);
  });

  it('can be given up while it waits: nothing is called, charged or left behind', async () => {
    const { api, time, limiter } = await limiterOf({ ...tenASecond, concurrency: { limit: 1 } });
    const { run, end } = job<string>();
    const first = schedule(api, 'k', run);
    await time.advance(500);
    const before = time.pending;
    const abort = new AbortController();
    let called = 0;
    const call = () => schedule(api, 'k', () => (called += 1), { signal: abort.signal });
    const gone = Promise.allSettled([call(), call(), call()]);
    await time.advance(10);
    expect(getEventListeners(abort.signal, 'abort')).toHaveLength(1);
    abort.abort(new Error('changed my mind'));
    expect((await gone).map((end) => end.status === 'rejected' && end.reason.message)).toEqual(
      Array(3).fill('changed my mind'),
    );
    await expect(call()).rejects.toThrow('changed my mind');
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
    await time.advance(500);
    expect(time.pending).toBeLessThanOrEqual(before);
    expect(called).toBe(0);
    expect(peek(api, 'k').remaining).toBe(2);
    expect(limiter.stats()[0]).toMatchObject({ waiting: 0, allowed: 1 });
    end('there');
    expect(await first).toBe('there');
  });

  it('is not held up by a policy that shadows', async () => {
    const { api } = await limiterOf({ ...tenASecond, mode: 'shadow', concurrency: { limit: 1 } });
    const calls = [1, 2, 3, 4].map((n) => schedule(api, 'k', () => n, { settle: () => 0 }));
    expect(await soFar(Promise.all(calls))).toEqual([1, 2, 3, 4]);
  });

  it('turns away who waits when the limiter is closed', async () => {
    const { api, limiter } = await limiterOf({ local: { rate: 1, burst: 1 } });
    const calls = [1, 2].map((n) => schedule(api, 'k', () => n));
    await limiter.close();
    expect(await calls[0]).toBe(1);
    await expect(calls[1]).rejects.toMatchObject({ decision: { reason: 'closed' } });
    await expect(schedule(api, 'k', () => 3)).rejects.toMatchObject({ code: 'HEADGATE_CLOSED' });
  });

  it('refuses what it can’t use, before it takes anything', async () => {
    const { api } = await limiterOf({ ...tenASecond, concurrency: { limit: 1 } });
    const call = (options: object, key = 'k') => schedule(api, key, () => 1, options);
    await expect(call({ colour: 1 })).rejects.toThrow(
      'Expected an option of `schedule` (cost, maxWaitMs, signal, priority, maxQueued, settle, pauseFor), got "colour".',
    );
    await expect(call({ settle: 3 })).rejects.toThrow('Expected `settle` to be a function, got 3.');
    await expect(call({ maxWaitMs: -1 })).rejects.toThrow('`maxWaitMs`');
    await expect(call({ cost: -1 })).rejects.toThrow('`cost`');
    await expect(call({ cost: 3 })).rejects.toThrow('local burst of 2');
    await expect(call({}, '')).rejects.toThrow('`key`');
    expect(peek(api, 'k').remaining).toBe(2);
  });
});

describe('schedule where the policy has concurrency', () => {
  it('keeps a seat until the call has ended, whichever way', async () => {
    const { api, time } = await limiterOf({ concurrency: { limit: 1 } });
    const [first, second] = [job<number>(), job<number>()];
    const one = schedule(api, 'k', first.run);
    const two = schedule(api, 'k', second.run);
    const three = schedule(api, 'k', () => 3);
    await time.advance(100);
    first.end(Promise.reject(new Error('broke')));
    await expect(one).rejects.toThrow('broke');
    expect(await soFar(three)).toBe('pending');
    second.end(2);
    await time.advance(100);
    expect(await Promise.all([two, three])).toEqual([2, 3]);
  });

  it('seats by priority, and lets no more wait than it is told', async () => {
    const { api, time } = await limiterOf({ local: { rate: 100, burst: 1 }, concurrency: { limit: 1 } });
    const { run, end } = job<void>();
    const begun: string[] = [];
    const call = (name: string, options: object) => schedule(api, 'k', () => begun.push(name), options);
    const calls: Promise<unknown>[] = [
      schedule(api, 'k', run),
      call('low', { priority: -1 }),
      call('usual', {}),
      call('high', { priority: 2 }),
      call('usual too', {}),
    ];
    await time.advance(100);
    await expect(call('one too many', { maxQueued: 4 })).rejects.toMatchObject({ decision: { reason: 'queue-full' } });
    calls.push(call('in time', { maxQueued: 5 }));
    end();
    await time.advance(1_000);
    await Promise.all(calls);
    expect(begun).toEqual(['high', 'usual', 'usual too', 'in time', 'low']);
  });

  it('rejects with the answer of `enter` where there is no seat in time', async () => {
    const { api, time } = await limiterOf({ concurrency: { limit: 1 } });
    const { run, end } = job<number>();
    const first = schedule(api, 'k', run);
    const refused = schedule(api, 'k', () => 2, { maxWaitMs: 50 }).catch((error) => error);
    await time.advance(100);
    expect(await refused).toMatchObject({
      code: 'HEADGATE_DENIED',
      message: 'Expected "api" to let the call pass, got a denial: full.',
      decision: { allowed: false, reason: 'full' },
      retryAfterMs: undefined,
    });
    end(1);
    expect(await first).toBe(1);
  });

  it('gives the seat back where it is the tokens that are denied', async () => {
    const { api } = await limiterOf({ local: { rate: 1, burst: 1 }, concurrency: { limit: 1 } });
    await schedule(api, 'k', () => 1);
    await expect(schedule(api, 'k', () => 2, { maxWaitMs: 500 })).rejects.toThrow('empty');
    expect((await api.enter('k')).allowed).toBe(true);
  });

  it('charges a call when it begins: those that had to wait for seats do not begin all at once', async () => {
    const { api, time } = await limiterOf({ local: { rate: 10, burst: 2 }, concurrency: { limit: 5 } });
    const slow = Array.from({ length: 5 }, () => job<void>());
    const begun: number[] = [];
    const calls = [
      ...slow.map(({ run }) => schedule(api, 'k', run)),
      ...Array.from({ length: 20 }, () => schedule(api, 'k', () => begun.push(time.now()))),
    ];
    await time.advance(10_000);
    expect(begun).toEqual([]);
    for (const { end } of slow) end();
    await time.advance(10_000);
    await Promise.all(calls);
    expect(begun).toHaveLength(20);
    for (const [i, at] of begun.entries()) {
      for (let j = i; j < begun.length; j++) {
        expect(j - i + 1).toBeLessThanOrEqual(2 + (((begun[j] as number) - at) / 1_000) * 10 + 1e-6);
      }
    }
  });
});

describe('what a scheduled call has cost', () => {
  it('is what `settle` says once it has ended: less comes back, more is charged', async () => {
    const { api } = await limiterOf({ local: { rate: 1, burst: 10 } });
    const unsent = new TypeError('not even sent');
    const settle = (outcome: PromiseSettledResult<number>) => {
      if (outcome.status === 'fulfilled') return outcome.value;
      return outcome.reason === unsent ? 0 : 3;
    };
    const left = async (run: () => number) => {
      await schedule(api, 'k', run, { cost: 3, settle }).catch(() => {});
      return peek(api, 'k').remaining;
    };
    expect(await left(() => 1)).toBe(9);
    expect(await left(() => 5)).toBe(4);
    expect(
      await left(() => {
        throw unsent;
      }),
    ).toBe(4);
    expect(
      await left(() => {
        throw new Error('half done');
      }),
    ).toBe(1);
  });

  it('can be settled however long the call took', async () => {
    const { api, time } = await limiterOf({ local: { rate: 1, per: '1d', burst: 2 } });
    const { run, end } = job<string>();
    const call = schedule(api, 'k', run, { settle: () => 0 });
    await time.advance(3_600_000);
    end('at last');
    await call;
    expect(peek(api, 'k').remaining).toBe(2);
  });

  it('rejects with what `settle` throws, since then nobody knows', async () => {
    const { api } = await limiterOf({ ...tenASecond, concurrency: { limit: 1 } });
    await expect(schedule(api, 'k', () => 1, { settle: () => -1 })).rejects.toThrow('`cost`');
    expect((await api.enter('k')).allowed).toBe(true);
  });
});

describe('a pause that was asked for', () => {
  const busy = { retryAfterMs: 3_000 };
  const pauseFor = (outcome: PromiseSettledResult<unknown>) =>
    outcome.status === 'rejected' ? (outcome.reason.retryAfterMs as number) : undefined;

  it('holds all calls of the key, and is over when it was said to be', async () => {
    const { api, time } = await limiterOf({ local: { rate: 100, burst: 10 } });
    const call = (options: object = {}) => schedule(api, 'k', () => time.now() - 1_000, { pauseFor, ...options });
    expect(await call()).toBe(0);
    await expect(schedule(api, 'k', () => Promise.reject(busy), { pauseFor })).rejects.toBe(busy);
    const waits = [call(), call()];
    await expect(call({ maxWaitMs: 2_000 })).rejects.toMatchObject({
      decision: { reason: 'blocked' },
      retryAfterMs: 3_000,
    });
    expect(await schedule(api, 'another', () => 'not held')).toBe('not held');
    await time.advance(5_000);
    expect(await Promise.all(waits)).toEqual([3_000, 3_000]);
  });

  it('is waited out by calls that need a seat as well', async () => {
    const { api, time } = await limiterOf({ local: { rate: 100, burst: 10 }, concurrency: { limit: 1 } });
    await schedule(api, 'k', () => 'busy', { pauseFor: () => 3_000 });
    const waits = [1, 2].map(() => schedule(api, 'k', () => time.now() - 1_000));
    await expect(schedule(api, 'k', () => 3, { maxWaitMs: 100 })).rejects.toMatchObject({
      decision: { reason: 'blocked' },
    });
    await time.advance(4_000);
    // The second is seated when the store has been asked once more.
    expect(await Promise.all(waits)).toEqual([3_000, 3_005]);
  });

  it('is one that can be made, or the call rejects', async () => {
    const { api } = await limiterOf(tenASecond);
    await expect(schedule(api, 'k', () => 1, { pauseFor: () => -1 })).rejects.toThrow('length of a block');
    expect(await schedule(api, 'k', () => 1, { pauseFor: () => 0 })).toBe(1);
  });
});

describe('wrap', () => {
  it('makes a function that is called as before, `this` and arguments included', async () => {
    const { api } = await limiterOf(tenASecond);
    class Shop {
      readonly prices = new Map([['tea', 3]]);
      async price(item: string, count: number): Promise<number> {
        return (this.prices.get(item) ?? 0) * count;
      }
    }
    const shop = new Shop();
    const price = wrap(api, shop.price, { key: 'shop' });
    expect(await price.call(shop, 'tea', 2)).toBe(6);
    expectTypeOf(price.call<Shop, [string, number], Promise<number>>).returns.toEqualTypeOf<Promise<number>>();
    expectTypeOf(price).parameters.toEqualTypeOf<[item: string, count: number]>();
    expectTypeOf(wrap(api, (text: string) => text.length, { key: 'k' })).toEqualTypeOf<
      (this: unknown, text: string) => Promise<number>
    >();
  });

  it('takes key and cost from the arguments, where they are functions', async () => {
    const { api } = await limiterOf({ local: { rate: 1, burst: 10 } });
    const send = wrap(api, (to: string, pages: number[]) => `${pages.length} to ${to}`, {
      key: (to) => to,
      cost: (_to, pages) => pages.length,
      settle: (outcome) => (outcome.status === 'fulfilled' && outcome.value.endsWith('eve') ? 0 : 4),
    });
    expect(await send('ada', [1, 2, 3, 4])).toBe('4 to ada');
    expect(await send('eve', [1, 2, 3, 4])).toBe('4 to eve');
    expect([peek(api, 'ada').remaining, peek(api, 'eve').remaining]).toEqual([6, 10]);
  });

  it('refuses what it can’t use at once, and at a call what is wrong there', async () => {
    const { api } = await limiterOf(tenASecond);
    expect(() => wrap(api, 3 as never, { key: 'k' })).toThrow('Expected `fn` to be a function, got 3.');
    expect(() => wrap(api, () => {}, { key: 3 as never })).toThrow('Expected `key` to be a key or a function, got 3.');
    expect(() => wrap(api, () => {}, { key: 'k', keys: 'x' } as never)).toThrow('option of `wrap`');
    expect(() => wrap(api, () => {}, {} as never)).toThrow('Expected `key` to be a key or a function, got undefined.');
    await expect(wrap(api, () => {}, { key: () => '' })()).rejects.toThrow('Expected `key` to be a non-empty string');
    await expect(wrap(api, (cost: number) => cost, { key: 'k', cost: (cost) => cost })(-1)).rejects.toThrow('`cost`');
  });
});
