import { createClient, createClientPool, createCluster, createSentinel } from 'redis';
import { describe, expect, it } from 'vitest';
import { isCluster, isNodeRedis, isSentinel } from '../../../src/ceiling/node-redis.js';
import { isRedisClient } from '../../../src/ceiling/redis-client.js';
import { InvalidOptionError } from '../../../src/errors.js';
import { createLimiter } from '../../../src/index.js';

const at = [{ host: '127.0.0.1', port: 1 }];

describe('a client of node-redis', () => {
  it('is known by its shape, and its kind too', () => {
    const standalone = createClient();
    const sentinel = createSentinel({ name: 'ceiling', sentinelRootNodes: at });
    const cluster = createCluster({ rootNodes: at.map((socket) => ({ socket })) });
    const kinds = [standalone, sentinel, cluster].map((client) => [
      isNodeRedis(client),
      isRedisClient(client),
      isSentinel(client),
      isCluster(client),
    ]);
    expect(kinds).toEqual([
      [true, false, false, false],
      [true, false, true, false],
      [true, false, false, true],
    ]);
  });

  const version4 = { isOpen: true, isReady: true, sendCommand: async () => 1, on: () => {}, off: () => {} };

  it.each([
    ['a pool', createClientPool()],
    ['of the legacy mode', createClient().legacy()],
    ['of version 4', version4],
    ['none at all', { isOpen: true }],
  ])('is refused where it is %s', async (_, redis) => {
    const error = await createLimiter({ redis: redis as never, telemetry: false }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(String(error)).toContain('createClient, createCluster or createSentinel');
  });
});
