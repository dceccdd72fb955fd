import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import type { Limiter } from '../../src/limiter/limiter.js';
import type { LimiterOptions } from '../../src/limiter/options.js';
import { eventually } from '../support/eventually.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisServer } from '../support/redis-server.js';
import { type ClientLibrary, LIBRARIES } from './redis-clients.js';

const POLICY = {
  name: 'api',
  local: { rate: 1, burst: 5, per: '1h' },
  ceiling: { rate: 1, burst: 100, per: '1h' },
} as const;

async function limiterOn(redis: NonNullable<LimiterOptions['redis']>): Promise<Limiter> {
  const limiter = await createLimiter({
    redis: redis as string,
    policies: [POLICY],
    telemetry: false,
    newStore: 'full',
    blocksEveryMs: 50,
    onTrouble: () => {},
  });
  onTestFinished(() => limiter.close());
  return limiter;
}

/** Whether nothing but tokens could be in the way of `k`. */
function passes(limiter: Limiter): boolean {
  const decision = limiter.policy('api').decide('k');
  return decision.allowed || decision.reason !== 'blocked';
}

/** What holds for any two limiters of a fleet: what one says is true of the other. */
async function agree(one: Limiter, other: Limiter): Promise<void> {
  const [a, b] = [one.policy('api'), other.policy('api')];
  for (const api of [a, b]) await eventually(async () => (await api.acquire('k')).allowed, 'the client is connected');
  expect(await a.block('k', [60_000, 300_000])).toEqual({ forMs: 60_000, step: 1 });
  expect(a.decide('k')).toMatchObject({ reason: 'blocked' });
  await eventually(() => !passes(other), 'the other has heard of the block');
  const { retryAfterMs } = b.decide('k') as { retryAfterMs: number };
  expect(retryAfterMs).toBeGreaterThan(55_000);
  expect(retryAfterMs).toBeLessThanOrEqual(60_000);
  expect(await b.block('k', [60_000, 300_000])).toMatchObject({ step: 1 });
  await b.unblock('k');
  await eventually(() => passes(one), 'the first has heard that it is lifted');
  expect(await b.block('k', [60_000, 300_000])).toEqual({ forMs: 300_000, step: 2 });
}

describe.each(LIBRARIES.map((library): [string, ClientLibrary] => [library.name, library]))(
  'blocks through %s',
  (_, library) => {
    it('hold in all limiters on one server', async () => {
      const server = await RedisServer.start();
      onTestFinished(() => server.stop());
      const clients = [library.standalone(server.port), library.standalone(server.port)];
      for (const client of clients) {
        await client.connect();
        onTestFinished(async () => void client.close());
      }
      const [a, b] = (await Promise.all(clients.map(({ redis }) => limiterOn(redis as never)))) as [Limiter, Limiter];
      await agree(a, b);
    });
  },
);

describe('blocks in Redis', () => {
  it('hold in all limiters on a cluster', { timeout: 60_000 }, async () => {
    const cluster = await RedisCluster.start();
    onTestFinished(() => cluster.stop());
    for (const library of [LIBRARIES[0], LIBRARIES[3]] as ClientLibrary[]) {
      const clients = [library.cluster(cluster.ports), library.cluster(cluster.ports)];
      for (const client of clients) {
        await client.connect();
        onTestFinished(async () => void client.close());
      }
      const [a, b] = (await Promise.all(clients.map(({ redis }) => limiterOn(redis as never)))) as [Limiter, Limiter];
      await agree(a, b);
      await a.policy('api').reset('k');
      await b.policy('api').reset('k');
    }
  });

  it('are known to a new limiter from its first decision on', async () => {
    const server = await RedisServer.start();
    onTestFinished(() => server.stop());
    const a = await limiterOn(server.url);
    await a.policy('api').block('k', Number.POSITIVE_INFINITY);
    const b = await limiterOn(server.url);
    expect(b.policy('api').decide('k')).toMatchObject({ reason: 'blocked', retryAfterMs: undefined });
    const redis = new Redis(server.url);
    onTestFinished(async () => redis.disconnect());
    await redis.flushall();
    // A store that has lost its data: what is known holds, and what is said now is heard of.
    expect(b.policy('api').tryAcquire('k')).toBe(false);
    await a.policy('api').unblock('k');
    await eventually(() => passes(b), 'the other has heard that it is lifted');
  });
});
