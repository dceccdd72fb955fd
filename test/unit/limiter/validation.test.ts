import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createLimiter } from '../../../src/create-limiter.js';
import { CostAboveBurstError, InvalidCostError, InvalidKeyError, InvalidOptionError } from '../../../src/errors.js';
import { limiterOf } from '../../support/limiter-under-test.js';

const local = { rate: 10, burst: 10 };

describe('a cost', () => {
  const expected = (got: string) => `Expected \`cost\` to be a positive number with at most 6 decimals, got ${got}.`;
  const above = (cost: string, tier = 'local') =>
    `Expected \`cost\` to be at most the ${tier} burst of 10 tokens, got ${cost}: it could never pass.`;

  it.each([
    [0, expected('0')],
    [-0, expected('0')],
    [-5, expected('-5')],
    [-1e-9, expected('-1e-9')],
    [Number.NaN, expected('NaN')],
    [Number.POSITIVE_INFINITY, expected('Infinity')],
    [Number.NEGATIVE_INFINITY, expected('-Infinity')],
    [1e-7, expected('1e-7')],
    [1.0000001, expected('1.0000001')],
    ['3', expected('"3"')],
    [null, expected('null')],
    [1n, expected('1n')],
    [{}, expected('an object')],
    [11, above('11')],
    [10.000001, above('10.000001')],
    [200_000_000, above('200000000')],
    [2 ** 53, above('9007199254740992')],
    [1e308, above('1e+308')],
  ])('of %s is refused by every verb, and changes nothing (C11, C38, C40, C44)', async (cost, message) => {
    for (const tier of ['local', 'ceiling'] as const) {
      const { api, limiter } = await limiterOf({ [tier]: local });
      const text = message.replace('the local burst', `the ${tier} burst`);
      const kind = message.includes('never pass') ? CostAboveBurstError : InvalidCostError;
      for (const call of [() => api.tryAcquire('k', cost as number), () => api.decide('k', cost as number)]) {
        expect(call).toThrow(kind);
        expect(call).toThrow(text);
      }
      const rejection = api.acquire('k', { cost: cost as number });
      await expect(rejection).rejects.toThrow(kind);
      await expect(rejection).rejects.toThrow(text);
      expect(limiter.stats()[0]).toMatchObject({ allowed: 0, keys: 0, leaseCalls: 0 });
      expect(api.tryAcquire('k', 10)).toBe(true);
      expect(api.tryAcquire('k', 0.000001)).toBe(false);
    }
  });

  it.each([1e-6, 0.1, 0.3, 1.1, 9.999999, 10])('of %f is taken exactly', async (cost) => {
    const { api } = await limiterOf({ ceiling: local });
    expect(api.tryAcquire('k', cost)).toBe(true);
    expect(api.tryAcquire('k', Math.round((10 - cost) * 1e6) / 1e6 || 1)).toBe(cost < 10);
  });

  it('of one token is refused where the burst is less', async () => {
    const { api } = await limiterOf({ local: { rate: 1, burst: 0.5 } });
    expect(() => api.tryAcquire('k')).toThrow(CostAboveBurstError);
    expect(api.tryAcquire('k', 0.5)).toBe(true);
  });

  it('that is left out or undefined is one', async () => {
    const { api } = await limiterOf({ local: { rate: 1, burst: 3 } });
    expect(api.tryAcquire('k', undefined)).toBe(true);
    await api.acquire('k', {});
    expect(api.decide('k')).toMatchObject({ allowed: true, remaining: 0 });
  });
});

describe('a key', () => {
  const bytes = (count: number) => `Expected \`key\` to be at most 512 bytes of UTF-8, got ${count} bytes.`;
  const notText = (got: string) => `Expected \`key\` to be a non-empty string, got ${got}.`;

  it.each([
    ['', notText('""')],
    [undefined, notText('undefined')],
    [null, notText('null')],
    [7, notText('7')],
    [['a'], notText('an array of 1')],
    ['k'.repeat(513), bytes(513)],
    ['é'.repeat(257), bytes(514)],
    ['😀'.repeat(129), bytes(516)],
    ['\ud800', 'Expected `key` to be well-formed text, got one with half a surrogate pair.'],
    ['a\udfffb', 'Expected `key` to be well-formed text, got one with half a surrogate pair.'],
  ])('%j is refused (C127, C131)', async (key, message) => {
    const { api, limiter } = await limiterOf({ local });
    for (const call of [() => api.tryAcquire(key as string), () => api.decide(key as string)]) {
      expect(call).toThrow(InvalidKeyError);
      expect(call).toThrow(message);
    }
    await expect(api.acquire(key as string)).rejects.toThrow(message);
    expect(limiter.stats()[0]?.keys).toBe(0);
  });

  it.each(['k', 'k'.repeat(512), 'é'.repeat(256), '😀'.repeat(128), ' ', '\u0000', '{}', 'a}b'])(
    '%j is taken',
    async (key) => {
      const { api } = await limiterOf({ ceiling: local });
      expect(api.tryAcquire(key)).toBe(true);
    },
  );
});

describe('the options of acquire', () => {
  it.each([
    [null, 'Expected the options of `acquire` to be an object, got null.'],
    [3, 'Expected the options of `acquire` to be an object, got 3.'],
    [{ costs: 1 }, 'Expected an option of `acquire` (cost, maxWaitMs, signal, priority, maxQueued), got "costs".'],
    [{ maxWaitMs: -1 }, 'Expected `maxWaitMs` to be a number of milliseconds, 0 or more, got -1.'],
    [{ maxWaitMs: Number.NaN }, 'Expected `maxWaitMs` to be a number of milliseconds, 0 or more, got NaN.'],
    [{ maxWaitMs: '5' }, 'Expected `maxWaitMs` to be a number of milliseconds, 0 or more, got "5".'],
    [{ signal: 'stop' }, 'Expected `signal` to be an AbortSignal, got "stop".'],
    [{ signal: {} }, 'Expected `signal` to be an AbortSignal, got an object.'],
  ])('%j are refused', async (options, message) => {
    const { api } = await limiterOf({ local });
    const rejection = api.acquire('k', options as never);
    await expect(rejection).rejects.toThrow(InvalidOptionError);
    await expect(rejection).rejects.toThrow(message);
  });

  it('may be undefined one by one, and maxWaitMs may be Infinity', async () => {
    const { api } = await limiterOf({ local });
    const options = { cost: undefined, maxWaitMs: undefined, signal: undefined } as never;
    expect(await api.acquire('k', options)).toMatchObject({ allowed: true });
    expect(await api.acquire('k', { maxWaitMs: Number.POSITIVE_INFINITY })).toMatchObject({ allowed: true });
  });
});

describe('the options of createLimiter', () => {
  const KNOWN =
    'policies, redis, nats, ceiling, policySource, instanceId, group, weight, callDeadlineMs, blocksEveryMs, maxKeys, keys, keyPrefix, ' +
    'newStore, telemetry, observer, onTrouble, time, random';

  it.each([
    [undefined, 'Expected the options of `createLimiter` to be an object, got undefined.'],
    [null, 'Expected the options of `createLimiter` to be an object, got null.'],
    ['redis://x', 'Expected the options of `createLimiter` to be an object, got "redis://x".'],
    [[], 'Expected the options of `createLimiter` to be an object, got an array of 0.'],
    [{ polices: [] }, `Expected an option of \`createLimiter\` (${KNOWN}), got "polices".`],
    [{ policies: {} }, 'Expected `policies` to be an array of policies, got an object.'],
    [{ redis: 'http://x' }, 'Expected `redis` to be a redis:// or rediss:// URL, or a client, got "http://x".'],
    [{ redis: 6379 }, 'Expected `redis` to be a redis:// or rediss:// URL, or a client, got 6379.'],
    [{ nats: '' }, 'Expected `nats` to be a nats:// URL, or a connection, got "".'],
    [{ nats: 4222 }, 'Expected `nats` to be a nats:// URL, or a connection, got 4222.'],
    [{ ceiling: 'x' }, 'Expected `ceiling` to be a ceiling store (ready, lease, heartbeat, close), got "x".'],
    [{ ceiling: {} }, 'Expected `ceiling` to be a ceiling store (ready, lease, heartbeat, close), got an object.'],
    [
      { policySource: {} },
      'Expected `policySource` to be a policy source (watch, list, publish, close), got an object.',
    ],
    [{ instanceId: '' }, 'Expected `instanceId` to be a text of 1 to 128 characters, got "".'],
    [{ instanceId: 7 }, 'Expected `instanceId` to be a text of 1 to 128 characters, got 7.'],
    [
      { group: 'g'.repeat(129) },
      'Expected `group` to be a text of 1 to 128 characters, got a string of 129 characters.',
    ],
    [{ weight: 0 }, 'Expected `weight` to be a whole number from 1 to 1,000, got 0.'],
    [{ weight: 1.5 }, 'Expected `weight` to be a whole number from 1 to 1,000, got 1.5.'],
    [{ weight: '2' }, 'Expected `weight` to be a whole number from 1 to 1,000, got "2".'],
    [{ callDeadlineMs: 4 }, 'Expected `callDeadlineMs` to be a number of ms from 5 to 120, got 4.'],
    [{ callDeadlineMs: '50' }, 'Expected `callDeadlineMs` to be a number of ms from 5 to 120, got "50".'],
    [{ callDeadlineMs: Number.NaN }, 'Expected `callDeadlineMs` to be a number of ms from 5 to 120, got NaN.'],
    [{ blocksEveryMs: 49 }, 'Expected `blocksEveryMs` to be a whole number from 50 to 60,000, got 49.'],
    [{ keys: 'secret' }, 'Expected `keys` to be { hash: a secret }, got "secret".'],
    [{ keys: { hash: 'short' } }, 'Expected the secret for keys to be a string or bytes, 16 at least, got 5 bytes.'],
    [{ maxKeys: 0 }, 'Expected `maxKeys` to be a whole number from 1 to 16,000,000, got 0.'],
    [{ maxKeys: 1e9 }, 'Expected `maxKeys` to be a whole number from 1 to 16,000,000, got 1000000000.'],
    [{ keyPrefix: 'a:b' }, 'Expected `keyPrefix` to be 1 to 32 characters of A–Z a–z 0–9 _ -, got "a:b".'],
    [{ keyPrefix: 7 }, 'Expected `keyPrefix` to be 1 to 32 characters of A–Z a–z 0–9 _ -, got 7.'],
    [{ newStore: 'none' }, "Expected `newStore` to be 'empty' or 'full', got \"none\"."],
    [{ telemetry: 1 }, 'Expected `telemetry` to be true or false, got 1.'],
    [{ observer: 'o' }, 'Expected `observer` to be an observer, got "o".'],
    [{ onTrouble: {} }, 'Expected `onTrouble` to be a function, got an object.'],
    [{ time: {} }, 'Expected `time` to be clocks and timers (now, wallNow, after), got an object.'],
    [{ random: 4 }, 'Expected `random` to be a function, got 4.'],
    [
      {
        redis: 'redis://h',
        ceiling: { ready: true, lease: () => [], heartbeat: async () => 1, close: async () => {} },
      },
      'Expected `redis` or `ceiling`, got both.',
    ],
    [
      { nats: 'nats://h', policySource: { watch() {}, list() {}, publish() {}, close() {} } },
      'Expected `nats` or `policySource`, got both.',
    ],
  ])('%j are refused (C40)', async (options, message) => {
    const rejection = createLimiter(options as never);
    await expect(rejection).rejects.toThrow(InvalidOptionError);
    await expect(rejection).rejects.toThrow(message);
  });

  it.each([
    [[{ name: 'a' }], 'at least one of `local`, `ceiling`, `concurrency`'],
    [
      [
        { name: 'a', local },
        { name: 'a', local },
      ],
      'Expected each policy once, got "a" twice.',
    ],
    [[{ name: 'a', local: { rate: 0, burst: 1 } }], '`local.rate`'],
    [[{ name: 'a', local: { rate: Number.NaN, burst: 1 } }], '`local.rate`'],
    [[{ name: 'a', local: { rate: 1, burst: -1 } }], '`local.burst`'],
    [[{ name: 'a', local: { rate: 1, burst: 1, per: '10' } }], '`local.per`'],
    [[{ name: 'a', local: { rate: 1, burst: 1, per: '10 minutez' } }], '`local.per`'],
  ])('with the policies %j are refused (C37, C40, C41, C43)', async (policies, message) => {
    await expect(createLimiter({ policies } as never)).rejects.toThrow(message);
  });

  it('are neither kept nor changed', async () => {
    const policies = [{ name: 'api', local: { rate: 1, burst: 1 } }];
    const options = Object.freeze({ policies, telemetry: false });
    const before = structuredClone(options);
    const limiter = await createLimiter(options);
    expect(options).toEqual(before);
    (policies[0] as { local: { burst: number } }).local.burst = 50;
    const api = limiter.policy('api');
    expect([api.tryAcquire('k'), api.tryAcquire('k')]).toEqual([true, false]);
    await limiter.close();
  });

  it('are all in docs/reference/options.md, in the order of the code, and nothing else is', () => {
    const page = readFileSync(new URL('../../../docs/reference/options.md', import.meta.url), 'utf8');
    const section = page.split(/^## /m).find((part) => part.startsWith('createLimiter'));
    const rows = [...(section ?? '').matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
    expect(rows).toEqual(KNOWN.split(', '));
    const acquire = page.split(/^## /m).find((part) => part.startsWith('acquire'));
    expect([...(acquire ?? '').matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)).toEqual([
      'cost',
      'maxWaitMs',
      'signal',
      'priority',
      'maxQueued',
    ]);
  });
});
