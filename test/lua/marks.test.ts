import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { assembleScript } from '../../scripts/embed-lua.mjs';
import { beginEra, feedMarks, newMarkTable, purgeMarks, setMark } from '../../src/ceiling/mark-ledger.js';
import { FOREVER, type MarkCall } from '../../src/ceiling/mark-store.js';
import { decodeFeed, markArguments, RedisMarks } from '../../src/ceiling/redis-marks.js';
import { describeMarkStore } from '../contract/mark-store.js';
import { RedisServer } from '../support/redis-server.js';

describe('the marks in Lua', () => {
  const script = assembleScript('marks.lua', {
    replace: { clock: 'clock-from-argument', server: 'server-from-argument' },
  });
  let redis: Redis;
  beforeAll(() => {
    redis = new Redis(inject('redisUrl'));
  });
  afterAll(() => redis.disconnect());

  it('are those of the model, on any history', async () => {
    const call = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          kind: fc.constant('block' as const),
          steps: fc.constantFrom([1_000_000], [500_000, 5_000_000], [1, 100_000_000, 300_000_000], [FOREVER]),
          forgetAfter: fc.constantFrom(0, 2_000_000, 200_000_000),
        }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('unblock' as const, 'reset' as const) }) },
    );
    const step = fc.record({
      call,
      key: fc.constantFrom('a', 'b:c', 'd e'),
      // Back as well, and on by so much that records go.
      passes: fc.constantFrom(0, 1, 400_000, 1_000_000, 61_000_000, 250_000_000, -700_000, -10_000_000),
      server: fc.constantFrom('', 'one', 'one', 'one', 'two'),
      since: fc.nat(12),
      stranger: fc.boolean(),
      reading: fc.boolean(),
    });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const keys = ['m', 's', 'e'].map((part) => `{marks-test}:${process.pid}:${run}:${part}`);
        run += 1;
        let now = 1_800_000_000_000_000;
        let eras = 0;
        let known = '';
        const table = newMarkTable('era-1');
        const ask = (args: readonly string[], server: string): Promise<unknown> => {
          eras += 1;
          if (known !== '' && server !== '' && server !== known) beginEra(table, `era-${eras}`);
          known = server || known;
          purgeMarks(table, now);
          return redis.eval(script.source, 3, ...keys, '0', `era-${eras}`, ...args, server, String(now));
        };
        for (const { call, key, passes, server, since, stranger, reading } of steps) {
          now += passes;
          const marked = { ...call, policy: 'api', key } as MarkCall;
          const answer = await ask(markArguments(marked), server);
          const { seq, until, step, reset } = setMark(table, marked, now);
          expect(answer).toEqual([table.era, now, seq, until, step, reset]);
          const era = stranger ? 'other' : table.era;
          const feed = await ask(['feed', era, String(since), reading ? '1' : '0'], server);
          expect(decodeFeed(feed)).toEqual(feedMarks(table, era, since, reading, now));
        }
        await redis.del(...keys);
      }),
      { numRuns: 150 },
    );
  });

  it('leave nothing but their head once nothing rests on them', async () => {
    const server = await RedisServer.start({ fakeTime: RedisServer.canFakeTime() });
    const client = new Redis(server.url);
    const store = new RedisMarks({ client, prefix: 'hg', mayIdentify: () => true });
    for (const key of ['a', 'b']) {
      await store.mark({ kind: 'block', policy: 'api', key, steps: [1_000_000], forgetAfter: 0 });
    }
    expect(await client.zcard('{hg:marks}:s')).toBe(2);
    await server.shiftClock(61_000);
    await store.feed('', 0, false);
    expect(await client.keys('*')).toEqual(['{hg:marks}:m']);
    expect(await client.hkeys('{hg:marks}:m')).toEqual(['@']);
    client.disconnect();
    await server.stop();
  });
});

describeMarkStore('Redis', async () => {
  const server = await RedisServer.start({ fakeTime: RedisServer.canFakeTime() });
  const client = new Redis(server.url);
  return {
    store: new RedisMarks({ client, prefix: 'hg', mayIdentify: () => true }),
    pass: (us) => server.shiftClock(us / 1_000),
    lose: async () => {
      await client.flushall();
    },
    close: async () => {
      client.disconnect();
      await server.stop();
    },
  };
});
