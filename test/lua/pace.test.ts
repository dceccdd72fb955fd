import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { assembleScript } from '../../scripts/embed-lua.mjs';
import { newSchedule, reserveSlots } from '../../src/ceiling/pace-ledger.js';
import { decodePaceReply, paceArguments, RedisPace } from '../../src/ceiling/redis-pace.js';
import { MICRO } from '../../src/units.js';
import { describePaceStore, paceCall } from '../contract/pace-store.js';

describe('the pace in Lua', () => {
  const script = assembleScript('pace.lua', { replace: { clock: 'clock-from-argument' } });
  let redis: Redis;
  beforeAll(() => {
    redis = new Redis(inject('redisUrl'));
  });
  afterAll(() => redis.disconnect());

  it('is that of the model, on any history', async () => {
    const step = fc.record({
      holder: fc.constantFrom('holder-a', 'holder-b', 'holder-c'),
      older: fc.constantFrom(0, 0, 0, 1, 2),
      version: fc.constantFrom(1, 1, 1, 2, 3),
      rateNum: fc.constantFrom(1, 7, 1_000),
      rateDen: fc.constantFrom(1, 3, 86_400),
      queue: fc.constantFrom(0, 5 * MICRO, 8 * MICRO),
      costs: fc.array(fc.integer({ min: 1, max: 2 * MICRO }), { maxLength: 4 }),
      passes: fc.constantFrom(0, 1, 400_000, 999_999, 1_000_000, 2_500_000, -50_000, -100_001, -10_000_000),
    });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const key = `{pace-test}:${process.pid}:${run++}`;
        let now = 1_800_000_000_000_000;
        let seq = 10;
        let schedule: ReturnType<typeof newSchedule> | undefined;
        for (const { holder, older, passes, ...rest } of steps) {
          now += passes;
          seq += 1;
          const call = paceCall({ ...rest, holder, seq: seq - older });
          schedule ??= newSchedule(call, now);
          const answer = await redis.eval(script.source, 1, key, ...paceArguments(call), String(now));
          await redis.persist(key);
          expect((answer as unknown[]).map(decodePaceReply)).toEqual([reserveSlots(schedule, call, now)]);
        }
      }),
      { numRuns: 60 },
    );
  }, 30_000);
});

describePaceStore('Redis', async () => {
  const redis = new Redis(inject('redisUrl'));
  return { store: new RedisPace(redis, `pace-${process.pid}`), close: async () => redis.disconnect() };
});
