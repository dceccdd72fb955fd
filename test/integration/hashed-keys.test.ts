import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import type { Limiter } from '../../src/limiter/limiter.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';

const SECRET = 'a secret of the whole fleet';
const KEYS = ['ada@example.org', 'vip@example.org', 'tenant-ada', 'one-too-many'];
const POLICY = {
  name: 'api',
  ceiling: { rate: 1, per: '1h', burst: 4 },
  concurrency: { limit: 1 },
  overrides: {
    'vip@example.org': { ceiling: { rate: 1, per: '1h', burst: 6 } },
    'tenant-*': { ceiling: { rate: 1, per: '1h', burst: 8 } },
  },
} as const;

async function limiterOn(redis: string): Promise<Limiter> {
  const limiter = await createLimiter({
    redis,
    policies: [POLICY],
    keys: { hash: SECRET },
    maxKeys: 3,
    newStore: 'full',
    blocksEveryMs: 50,
    telemetry: false,
  });
  onTestFinished(() => limiter.close());
  return limiter;
}

it('keys that are hashed never reach Redis, and mean the same to every instance', async () => {
  const server = await RedisServer.start();
  onTestFinished(() => server.stop());
  const redis = new Redis(server.url);
  onTestFinished(async () => redis.disconnect());
  const seen: string[] = [];
  const monitor = await redis.monitor();
  onTestFinished(async () => monitor.disconnect());
  monitor.on('monitor', (_time: string, args: string[]) => seen.push(args.join(' ')));

  const [one, other] = await Promise.all([limiterOn(server.url), limiterOn(server.url)]);
  const [a, b] = [one.policy('api'), other.policy('api')];
  // One bucket for both, under the terms that the key itself has.
  for (const [key, burst] of [
    ['ada@example.org', 4],
    ['vip@example.org', 6],
    ['tenant-ada', 8],
  ] as const) {
    expect(await a.acquire(key, { cost: burst / 2 }), key).toMatchObject({ allowed: true });
    expect(await b.acquire(key, { cost: burst / 2 }), key).toMatchObject({ allowed: true });
    expect(await a.acquire(key), key).toMatchObject({ allowed: false });
  }
  await a.acquire('one-too-many');

  const seat = await a.enter('ada@example.org');
  expect(await b.enter('ada@example.org')).toMatchObject({ allowed: false, reason: 'full' });
  const waiting = b.enter('ada@example.org', { maxWaitMs: 10_000 });
  await a.block('ada@example.org', 60_000);
  expect(a.decide('ada@example.org')).toMatchObject({ reason: 'blocked' });
  // Whoever waits for a seat, or asks, at the other instance.
  expect(await waiting).toMatchObject({ allowed: false, reason: 'blocked' });
  expect(b.decide('ada@example.org')).toMatchObject({ reason: 'blocked' });
  seat.release();
  await b.reset('ada@example.org');
  await eventually(
    async () => (await a.acquire('ada@example.org', { cost: 2 })).allowed,
    'the first has heard of the reset',
  );

  expect(seen.some((command) => command.includes('api'))).toBe(true);
  const everything = [...seen, ...(await redis.keys('*'))].join('\n');
  for (const key of [...KEYS, 'tenant-*', SECRET]) expect(everything.includes(key), key).toBe(false);
  for (const name of await redis.keys('*')) {
    if ((await redis.type(name)) !== 'hash') continue;
    for (const key of KEYS) expect(JSON.stringify(await redis.hgetall(name))).not.toContain(key);
  }
});
