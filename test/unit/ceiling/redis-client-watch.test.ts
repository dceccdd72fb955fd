import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { GivenRedisClient } from '../../../src/ceiling/node-redis.js';
import type { RedisClient } from '../../../src/ceiling/redis-client.js';
import { watchGivenClient } from '../../../src/ceiling/redis-client-watch.js';

function watch(options: unknown): { troubles: string[]; client: EventEmitter; release: () => void } {
  const troubles: string[] = [];
  const client = Object.assign(new EventEmitter(), { options });
  const release = watchGivenClient(client as unknown as GivenRedisClient, client as unknown as RedisClient, (error) => {
    expect(error.code).toBe('HEADGATE_REDIS_CLIENT');
    troubles.push(error.message);
  });
  return { troubles, client, release };
}

describe('a Redis client that was given', () => {
  it.each([
    ['retryStrategy null', { retryStrategy: null }],
    ['clusterRetryStrategy null', { clusterRetryStrategy: null }],
    ['reconnectStrategy false', { socket: { reconnectStrategy: false } }],
    ['socketTimeout without a reconnectStrategy', { socket: { socketTimeout: 1_000 } }],
  ])('is reported where it is set up to give up: %s', (got, options) => {
    expect(watch(options).troubles).toEqual([
      'Expected the Redis client that the limiter was given to connect again for as long as it takes, got ' +
        `${got}: once it loses its connection, ceilings stay degraded.`,
    ]);
  });

  it.each([
    [undefined],
    [{}],
    [{ retryStrategy: () => 50, socketTimeout: 1_000 }],
    [{ socket: {} }],
    [{ socket: { reconnectStrategy: 500, socketTimeout: 1_000 } }],
  ])('is not reported where it is not, or does not say: %j', (options) => {
    expect(watch(options).troubles).toEqual([]);
  });

  it('is reported when it ends, until it is released', () => {
    const { troubles, client, release } = watch({});
    client.emit('end');
    expect(troubles).toEqual([expect.stringContaining('was closed, or has given up connecting')]);
    release();
    expect(client.listenerCount('end')).toBe(0);
  });
});
