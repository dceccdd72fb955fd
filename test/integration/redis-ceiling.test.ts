import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import type { CeilingStore } from '../../src/ceiling/ceiling-store.js';
import { redisCeiling } from '../../src/ceiling/redis-ceiling.js';
import { describeCeilingStore, type StoreUnderTest } from '../contract/ceiling-store.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';

/** A store on a server of its own, whose clock is moved where that can be done, and waited for where not. */
async function open(connect: (url: string) => Promise<[CeilingStore, () => void]>): Promise<StoreUnderTest> {
  const fakeTime = RedisServer.canFakeTime();
  const server = await RedisServer.start({ fakeTime });
  const [store, disconnect] = await connect(server.url);
  await eventually(() => store.ready, 'the store is ready');
  return {
    store,
    pass: (us) => (fakeTime ? server.shiftClock(us / 1_000) : sleep(us / 1_000)),
    close: async () => {
      await store.close();
      disconnect();
      await server.stop();
    },
  };
}

describeCeilingStore('Redis by URL', () =>
  open(async (url) => [await redisCeiling(url, { newStore: 'full' }), () => {}]),
);

describeCeilingStore('Redis by a client of ioredis 6', () =>
  open(async (url) => {
    const client = new Redis(url);
    return [await redisCeiling(client, { newStore: 'full' }), () => client.disconnect()];
  }),
);

describeCeilingStore('Redis by a client of ioredis 5', () =>
  open(async (url) => {
    const client = new Redis5(url, { lazyConnect: true });
    return [await redisCeiling(client, { newStore: 'full', prefix: 'mine' }), () => client.disconnect()];
  }),
);
