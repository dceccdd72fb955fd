import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { assembleScript } from '../../scripts/embed-lua.mjs';
import { RedisSeats } from '../../src/ceiling/redis-seats.js';
import { holdSeats, newSeatTable, tableEnd } from '../../src/ceiling/seat-ledger.js';
import { describeSeatStore, seatCall } from '../contract/seat-store.js';
import { RedisServer } from '../support/redis-server.js';

describe('the seats in Lua', () => {
  const script = assembleScript('seats.lua', { replace: { clock: 'clock-from-argument' } });
  let redis: Redis;
  beforeAll(() => {
    redis = new Redis(inject('redisUrl'));
  });
  afterAll(() => redis.disconnect());

  it('are those of the model, on any history', async () => {
    const step = fc.record({
      holder: fc.constantFrom('holder-a', 'holder-b', 'holder-c', 'holder-d'),
      older: fc.constantFrom(0, 0, 0, 1, 2),
      version: fc.constantFrom(1, 1, 1, 2, 3),
      limit: fc.constantFrom(5, 5, 8),
      held: fc.nat(6),
      want: fc.nat(6),
      lostAfter: fc.constantFrom(1_000_000, 3_000_000),
      // Back as well, and on by so much that holders are lost.
      passes: fc.constantFrom(0, 1, 400_000, 999_999, 1_000_000, 2_500_000, -700_000, -10_000_000),
    });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const key = `{seats-test}:${process.pid}:${run++}`;
        let table = newSeatTable();
        let now = 1_800_000_000_000_000;
        let seq = 10;
        for (const { holder, older, passes, ...rest } of steps) {
          now += passes;
          seq += 1;
          // The key expires by the server's own clock, which the test's is not.
          if (tableEnd(table) <= now) {
            table = newSeatTable();
            await redis.del(key);
          }
          const call = seatCall({ ...rest, holder, seq: seq - older });
          const numbers = [call.seq, call.version, call.limit, call.held, call.want, call.lostAfter].map(String);
          const answer = await redis.eval(script.source, 1, key, call.holder, ...numbers, String(now));
          await redis.persist(key);
          const { status, granted, taken, most, version } = holdSeats(table, call, now);
          expect(answer).toEqual([[status === 'granted' ? 0 : 1, call.seq, granted, taken, most, version]]);
        }
        await redis.del(key);
      }),
      { numRuns: 150 },
    );
  });

  it('take no room once everybody has been lost', async () => {
    const store = new RedisSeats(redis, 'seats-expiry');
    const call = seatCall({ key: 'gone', want: 1, lostAfter: 50_000 });
    await store.hold([call])[0];
    const [name = ''] = await redis.keys('{seats-expiry:*}:s:api:gone');
    const left = await redis.pttl(name);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(51);
  });
});

describeSeatStore('Redis', async () => {
  const server = await RedisServer.start({ fakeTime: RedisServer.canFakeTime() });
  const client = new Redis(server.url);
  return {
    store: new RedisSeats(client, 'hg'),
    pass: (us) => server.shiftClock(us / 1_000),
    close: async () => {
      client.disconnect();
      await server.stop();
    },
  };
});
