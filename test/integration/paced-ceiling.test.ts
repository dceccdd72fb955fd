import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import { SLOT_LASTS_MS } from '../../src/pace/pacer.js';
import { RedisServer } from '../support/redis-server.js';

/** What an answer of a Redis beside this process takes at most on its way back. */
const WAY_BACK_MS = 100;

describe('a leaky bucket of two limiters on a Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterAll(() => redis.stop());

  it('lets their requests leave evenly, as many as its queue has room for', async () => {
    const policies = [{ name: 'api', ceiling: { algorithm: 'leaky-bucket' as const, rate: 20, queue: 10 } }];
    const limiters = await Promise.all(
      [0, 1].map(() => createLimiter({ redis: redis.url, newStore: 'full', telemetry: false, policies })),
    );
    // Until both are connected, so that all who ask do so at once.
    for (const limiter of limiters) await limiter.policy('api').acquire('another');
    const times: number[] = [];
    const decisions = await Promise.all(
      Array.from({ length: 14 }, async (_, i) => {
        const decision = await limiters[i % 2]?.policy('api').acquire('k');
        if (decision?.allowed) times.push(performance.now());
        return decision;
      }),
    );
    const denied = decisions.filter((decision) => decision && !decision.allowed);
    expect(times.length).toBeGreaterThanOrEqual(11);
    expect(times.length).toBeLessThanOrEqual(12);
    expect(denied.every((decision) => decision?.allowed === false && decision.reason === 'queue-full')).toBe(true);
    for (let i = 0; i < times.length; i++) {
      for (let j = i + 1; j < times.length; j++) {
        const apart = (times[j] ?? 0) - (times[i] ?? 0);
        expect(apart).toBeGreaterThanOrEqual((j - i) * 50 - SLOT_LASTS_MS - WAY_BACK_MS);
      }
    }
    await Promise.all(limiters.map((limiter) => limiter.close()));
  });
});
