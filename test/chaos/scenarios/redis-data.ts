import { Redis } from 'ioredis';
import type { Scenario } from '../scenario.js';
import { afterStoreLoss, LEASE_END_MS, never, type Stage } from '../stage.js';

const STORE_LOSS = '0; in windows begun within a lease of the loss: what was in wallets, ≤ min(B, R·lease)';

/** A connection that does not come in the way of a fault. */
export async function withRedis<T>(port: number, action: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({ port, host: '127.0.0.1', lazyConnect: true, maxRetriesPerRequest: 0 });
  redis.on('error', () => {});
  try {
    await redis.connect();
    return await action(redis);
  } finally {
    redis.disconnect();
  }
}

/** The bucket's key, and not its partition's header. */
async function bucketKeys(redis: Redis): Promise<string[]> {
  return (await redis.keys('{hg:*}:b:*')).sort();
}

/** Redis loses what it knew, in one way or another. */
export const redisDataScenarios: readonly Scenario[] = [
  {
    name: 'Redis killed, restarted empty once leases are over',
    bound: '0',
    inTests: true,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis();
      await redis.kill();
      await stage.last(LEASE_END_MS + 100, 5_000);
      await redis.restart({ keepData: false });
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'Redis killed, restarted empty at once',
    bound: STORE_LOSS,
    changedInTests: true,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis();
      const lostAt = stage.now();
      await redis.kill();
      await redis.restart({ keepData: false });
      return stage.conclude(fleet, { rules: afterStoreLoss(fleet, lostAt), healedAt: stage.now() });
    },
  },
  {
    name: 'Redis killed, restarted at once from its AOF',
    bound: '0',
    changedInTests: true,
    inTests: true,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis({}, { appendonly: true });
      await redis.kill();
      await redis.restart();
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'Redis stopped for 10 s (SIGSTOP), then going on',
    bound: '0',
    inTests: true,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis();
      await redis.pause();
      await stage.last(LEASE_END_MS + 400, 10_000);
      redis.resume();
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'FLUSHALL',
    bound: STORE_LOSS,
    inTests: true,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis();
      const lostAt = stage.now();
      await withRedis(redis.port, (client) => client.flushall());
      return stage.conclude(fleet, { rules: afterStoreLoss(fleet, lostAt), healedAt: stage.now() });
    },
  },
  {
    name: 'FLUSHALL, again and again',
    bound: STORE_LOSS,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis();
      let lostAt = stage.now();
      const firstAt = lostAt;
      for (let i = 0; i < 5; i++) {
        lostAt = stage.now();
        await withRedis(redis.port, (client) => client.flushall());
        await stage.last(300);
      }
      const [before] = afterStoreLoss(fleet, firstAt);
      const [, within, later] = afterStoreLoss(fleet, lostAt);
      return stage.conclude(fleet, {
        rules: [before, { ...within, beginsFrom: firstAt }, later],
        healedAt: stage.now(),
      });
    },
  },
  {
    name: 'The bucket’s key deleted',
    bound: '≤ B for that key, where no holder’s witness comes first',
    inTests: true,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis();
      await withRedis(redis.port, async (client) => {
        const deleted = await client.del(...(await bucketKeys(client)));
        if (deleted === 0) throw new Error('There was no bucket to delete');
      });
      return stage.conclude(fleet, { rules: [never(fleet, fleet.burst)], healedAt: stage.now() });
    },
  },
];
