import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { type RedisCeiling, type RedisCeilingOptions, redisCeiling } from '../../src/ceiling/redis-ceiling.js';
import type { RedisClient } from '../../src/ceiling/redis-client.js';
import { eventually } from './eventually.js';
import { RedisServer } from './redis-server.js';

type Options = Pick<RedisCeilingOptions, 'onTrouble' | 'newStore' | 'prefix'>;

/** A Redis for all tests of a file, and what each of them makes besides: it is gone when the test has ended. */
export class RedisTests {
  readonly #cleanups: (() => unknown)[] = [];
  #server: RedisServer | undefined;
  #admin: Redis | undefined;

  constructor() {
    beforeAll(async () => {
      this.#server = await RedisServer.start();
      this.#admin = new Redis(this.#server.url);
    });
    afterEach(async () => {
      for (const cleanup of this.#cleanups.splice(0).reverse()) await cleanup();
    });
    afterAll(async () => {
      this.#admin?.disconnect();
      await this.#server?.stop();
    });
  }

  get server(): RedisServer {
    return this.#server as RedisServer;
  }

  /** A client for what no limiter does. */
  get admin(): Redis {
    return this.#admin as Redis;
  }

  /** Calls these when the test has ended, the last first. */
  readonly afterTest = (...cleanups: (() => unknown)[]): void => {
    this.#cleanups.push(...cleanups);
  };

  readonly ceiling = async (redis: string | RedisClient, options: Options = {}): Promise<RedisCeiling> => {
    const store = await redisCeiling(redis, { newStore: 'full', ...options });
    this.afterTest(() => store.close());
    await eventually(() => store.ready, 'the store is ready');
    return store;
  };

  readonly client = (url: string): Redis => {
    const redis = new Redis(url);
    redis.on('error', () => {});
    this.afterTest(() => redis.disconnect());
    return redis;
  };

  readonly ownServer = async (options: Parameters<typeof RedisServer.start>[0] = {}): Promise<RedisServer> => {
    const own = await RedisServer.start(options);
    this.afterTest(() => own.stop());
    return own;
  };
}
