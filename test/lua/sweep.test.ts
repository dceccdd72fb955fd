import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { leaseKeys } from '../../src/ceiling/redis-lease-codec.js';
import { MICRO } from '../../src/units.js';
import { leaseCall } from '../contract/ceiling-store.js';
import { LedgerPair } from './ledger-pair.js';

const PREFIX = 'sweep';
const HOLDERS = 1_000;

describe('a bucket of more holders than one call looks at', () => {
  let redis: Redis;
  beforeAll(() => {
    redis = new Redis(inject('redisUrl'));
  });
  afterAll(() => redis.disconnect());

  async function record(key: string): Promise<{ outstanding: number; members: number }> {
    const text = (await redis.eval(
      `local at, t, r, out, le, sw, ex, members = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'b'))
       return string.format('%.0f %.0f', out, members)`,
      1,
      key,
    )) as string;
    const [outstanding = 0, members = 0] = text.split(' ').map(Number);
    return { outstanding, members };
  }

  it('ends all their leases within a few calls, and none of those that live', async () => {
    const pair = new LedgerPair(redis, PREFIX);
    const terms = { burst: 10_000 * MICRO, rateNum: 1_000, rateDen: 1 };
    const moment = { now: 1_800_000_000_000_000, server: '', newStore: 'full' as const };
    const call = (index: number, lease: number) =>
      leaseCall({ ...terms, key: 'crowd', holder: `holder-${index}`.padEnd(16, '-'), need: MICRO, lease });
    const [, bucket] = leaseKeys(PREFIX, call(0, 0));
    // Half of them for a second, the others for a minute.
    for (let i = 0; i < HOLDERS; i += 50) {
      const calls = Array.from({ length: 50 }, (_, j) => call(i + j, i < HOLDERS / 2 ? 1_000_000 : 60_000_000));
      const { lua, model } = await pair.execute(calls, moment);
      expect(lua).toEqual(model);
    }
    expect(await record(bucket)).toEqual({ outstanding: HOLDERS * MICRO, members: HOLDERS });

    moment.now += 10_000_000;
    for (let asked = 0; ; asked++) {
      expect(asked).toBeLessThan(2 * Math.ceil(HOLDERS / 64));
      await pair.execute([call(HOLDERS, 60_000_000)], moment);
      const { outstanding, members } = await record(bucket);
      if (members === HOLDERS / 2 + 1) {
        // And the one that the asking holder was granted.
        expect(outstanding).toBe((HOLDERS / 2 + 1) * MICRO);
        break;
      }
    }
    await pair.lose();
  });
});
