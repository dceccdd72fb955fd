import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type CeilingStore, type GrantReply, type LeaseCall, partitionOf } from '../../src/ceiling/ceiling-store.js';
import { clusterSlot } from '../../src/ceiling/cluster-slot.js';
import { isNodeRedis } from '../../src/ceiling/node-redis.js';
import { NodeRedisClient } from '../../src/ceiling/node-redis-client.js';
import { redisCeiling } from '../../src/ceiling/redis-ceiling.js';
import { createLimiter } from '../../src/create-limiter.js';
import { CeilingError, RedisClientError } from '../../src/errors.js';
import { MICRO } from '../../src/units.js';
import { describeCeilingStore, leaseCall } from '../contract/ceiling-store.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { RedisCluster } from '../support/redis-cluster.js';
import { RedisSentinels } from '../support/redis-sentinel.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { LIBRARIES, type Opened } from './redis-clients.js';

const NODE_REDIS = LIBRARIES.filter(({ name }) => name.startsWith('node-redis'));
const nobody = (): void => {};
const RECOVERY = { deadlineMs: 15_000 };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function storeOf(opened: Opened, prefix?: string): Promise<CeilingStore> {
  cleanups.push(() => opened.close());
  await opened.connect();
  const store = await redisCeiling(opened.redis, { newStore: 'full', ...(prefix && { prefix }) });
  cleanups.push(() => store.close());
  await eventually(() => store.ready, 'the store is ready', RECOVERY);
  return store;
}

async function serverOf(options: Parameters<typeof RedisServer.start>[0] = {}): Promise<RedisServer> {
  const server = await RedisServer.start(options);
  cleanups.push(() => server.stop());
  return server;
}

function adminOf(port: number): Redis {
  const admin = new Redis({ host: '127.0.0.1', port });
  admin.on('error', () => {});
  cleanups.push(() => admin.disconnect());
  return admin;
}

async function ask(store: CeilingStore, changes: Partial<LeaseCall>): Promise<GrantReply> {
  return (await store.lease([leaseCall(changes)])[0]) as GrantReply;
}

/** How many scripts the server has run. */
async function scriptsRun(admin: Redis): Promise<number> {
  const stats = await admin.info('commandstats');
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

describe.each(LIBRARIES)('a client of $name', (library) => {
  describeCeilingStore(`Redis by a client of ${library.name}`, async () => {
    const fakeTime = RedisServer.canFakeTime();
    const server = await RedisServer.start({ fakeTime });
    const opened = library.standalone(server.port);
    await opened.connect();
    const store = await redisCeiling(opened.redis, { newStore: 'full' });
    await eventually(() => store.ready, 'the store is ready');
    return {
      store,
      pass: (us) => (fakeTime ? server.shiftClock(us / 1_000) : sleep(us / 1_000)),
      close: async () => {
        await store.close();
        await opened.close();
        await server.stop();
      },
    };
  });

  it('sends the script again to a server that has forgotten it', async () => {
    const server = await serverOf();
    const store = await storeOf(library.standalone(server.port));
    await ask(store, {});
    await adminOf(server.port).script('FLUSH');
    expect((await ask(store, { need: MICRO })).granted).toBe(MICRO);
  });

  it('suspects the data of a server that was restarted', async () => {
    const server = await serverOf({ appendonly: true });
    const store = await storeOf(library.standalone(server.port));
    const before = await ask(store, { key: 'k', need: 10 * MICRO });
    await server.restart({ keepData: true });
    const after = await eventually(() => ask(store, { key: 'k', need: MICRO }), 'it answers again', RECOVERY);
    expect(after.era).not.toBe(before.era);
    expect(after.granted).toBe(0);
  });

  it('rejects calls once its owner has closed it, and is left alone when the store is closed', async () => {
    const server = await serverOf();
    const opened = library.standalone(server.port);
    const store = await storeOf(opened);
    await ask(store, {});
    await store.close();
    const again = await redisCeiling(opened.redis);
    cleanups.push(() => again.close());
    await ask(again, {});
    await opened.close();
    await eventually(() => !again.ready, 'it is noticed');
    await expect(again.lease([leaseCall()])[0]).rejects.toThrow(CeilingError);
    await expect(again.heartbeat('group', 'one')).rejects.toThrow(CeilingError);
  });

  it('is reported once it will not connect again', async () => {
    const server = await serverOf();
    const opened = library.standalone(server.port);
    cleanups.push(() => opened.close());
    await opened.connect();
    const troubles: Error[] = [];
    const store = await redisCeiling(opened.redis, { onTrouble: (error) => troubles.push(error) });
    await eventually(() => store.ready, 'the store is ready');
    expect(troubles).toEqual([]);
    await opened.close();
    await eventually(() => troubles.length > 0, 'it is told');
    expect(troubles[0]).toBeInstanceOf(RedisClientError);
    await store.close();
    expect((opened.redis as unknown as NodeJS.EventEmitter).listenerCount('end')).toBe(0);
  });

  it.each([
    ['has never been connected', false],
    ['finds nobody', true],
  ])('makes a limiter degraded where it %s, and nothing worse', async (_, connects) => {
    const opened = library.standalone(await freePort());
    cleanups.push(() => opened.close());
    if (connects) void opened.connect();
    const limiter = await createLimiter({
      policies: [{ name: 'api', ceiling: { rate: 1, burst: 10 } }],
      redis: opened.redis,
      telemetry: false,
    });
    cleanups.push(() => limiter.close());
    const decision = await limiter.policy('api').acquire('k');
    expect(decision).toMatchObject({ allowed: false, reason: 'degraded', degraded: true });
  });
});

describe.each(NODE_REDIS)('a client of $name', (library) => {
  it('never runs what could not be sent at once, and leaves the queue of the application alone', async () => {
    const server = await serverOf();
    const admin = adminOf(server.port);
    const proxy = await TcpProxy.start({ targetPort: server.port });
    cleanups.push(() => proxy.stop());
    const opened = library.standalone(proxy.port);
    cleanups.push(() => opened.close());
    await opened.connect();
    if (!isNodeRedis(opened.redis)) throw new Error('not a client of node-redis');
    const client = new NodeRedisClient(opened.redis);
    expect(await client.eval('return 1', 0)).toBe(1);
    const before = await scriptsRun(admin);

    await proxy.refuseConnections();
    proxy.cut();
    await eventually(() => client.status === 'connecting', 'the loss is noticed');
    const owner = opened.redis as unknown as { ping(): Promise<string> };
    const owners = owner.ping();
    for (let attempt = 0; attempt < 3; attempt++) await expect(client.eval('return 2', 0)).rejects.toThrow('Not sent');
    await proxy.heal();
    await eventually(() => client.status === 'ready', 'connected anew', RECOVERY);

    expect(await owners).toBe('PONG');
    expect(await client.eval('return 3', 0)).toBe(3);
    expect(await scriptsRun(admin)).toBe(before + 1);
    client.on('close', nobody).removeListener('close', nobody);
  });

  it('does not end the process for want of a listener, and is left without any of ours (C79)', async () => {
    const server = await serverOf();
    const opened = library.standalone(server.port);
    const emitter = opened.redis as unknown as NodeJS.EventEmitter;
    const counts = () => emitter.eventNames().map((name) => [name, emitter.listenerCount(name)]);
    const before = counts();
    const store = await storeOf(opened);
    await server.kill();
    await eventually(() => !store.ready, 'the loss is noticed');
    await store.close();
    expect(counts()).toEqual(before);
    emitter.on('error', () => {});
  });
});

describe('Sentinel', () => {
  let sentinels: RedisSentinels;
  beforeAll(async () => {
    sentinels = await RedisSentinels.start();
  }, 60_000);
  afterAll(() => sentinels?.stop());

  async function masterPort(): Promise<number> {
    const [, port] = (await adminOf(sentinels.ports[0] as number).call(
      'SENTINEL',
      'GET-MASTER-ADDR-BY-NAME',
      sentinels.name,
    )) as [string, string];
    return Number(port);
  }

  it.each(LIBRARIES)(
    '$name finds the promoted replica, and suspects its data',
    async (library) => {
      const prefix = library.name.replaceAll(' ', '');
      const store = await storeOf(library.sentinel(sentinels.name, sentinels.ports), prefix);
      const before = await ask(store, { key: 'k', need: 10 * MICRO });
      expect(before.granted).toBe(10 * MICRO);

      const former = await masterPort();
      const master = adminOf(former);
      await master.config('SET', 'repl-diskless-sync-delay', '0');
      await eventually(
        async () => (await master.set('last', 'write')) && (await master.wait(2, 500)) === 2,
        'both replicas have everything',
        RECOVERY,
      );
      const sentinel = adminOf(sentinels.ports[0] as number);
      await eventually(() => sentinel.call('SENTINEL', 'FAILOVER', sentinels.name), 'a failover begins', RECOVERY);
      await eventually(async () => (await masterPort()) !== former, 'another is the master', RECOVERY);

      const after = await eventually(
        async () => {
          const reply = await ask(store, { key: 'k', need: MICRO });
          return reply.era !== before.era && reply;
        },
        'the new master answers',
        RECOVERY,
      );
      expect(after).toMatchObject({ granted: 0 });
    },
    60_000,
  );
});

describe.each(NODE_REDIS)('a Sentinel client of $name', (library) => {
  it('does not send to the promoted replica what a frozen master never answered', async () => {
    const sentinels = await RedisSentinels.start();
    cleanups.push(() => sentinels.stop());
    const store = await storeOf(library.sentinel(sentinels.name, sentinels.ports));
    const before = await ask(store, { key: 'k' });
    const replicas = sentinels.replicaPorts.map(adminOf);
    const run = async () => (await Promise.all(replicas.map(scriptsRun))).reduce((sum, count) => sum + count);

    await sentinels.master.pause();
    const lost = expect(store.lease([leaseCall({ key: 'k' })])[0]).rejects.toThrow(CeilingError);
    const promoted = async (admin: Redis) => (await admin.info('replication')).includes('role:master');
    await eventually(
      async () => (await Promise.all(replicas.map(promoted))).includes(true),
      'one is promoted',
      RECOVERY,
    );
    await lost;
    await eventually(() => store.ready, 'it is found', RECOVERY);
    expect(await run()).toBe(0);

    const after = await eventually(() => ask(store, { key: 'k' }), 'it answers', RECOVERY);
    expect(after.era).not.toBe(before.era);
  }, 60_000);
});

describe('Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start();
  }, 60_000);
  afterAll(() => cluster?.stop());

  /** The slot of a key's partition, and the masters that it is to leave and to go to. */
  async function slotOf(prefix: string, key: string) {
    const [first] = cluster.masters as [RedisCluster['masters'][0]];
    const slot = Number(await first.client.call('CLUSTER', 'KEYSLOT', `{${prefix}:${partitionOf('api', key)}}:h`));
    const from = cluster.ownerOf(slot);
    const source = cluster.masters[from] as typeof first;
    const target = cluster.masters[(from + 1) % cluster.masters.length] as typeof first;
    return { slot: String(slot), source, target };
  }

  it.each(LIBRARIES)(
    '$name reaches every partition, and follows slots that move',
    async (library) => {
      const prefix = library.name.replaceAll(' ', '');
      const store = await storeOf(library.cluster(cluster.ports), prefix);
      const calls = Array.from({ length: 200 }, () => leaseCall({ need: 3 * MICRO }));
      // ioredis says that it is ready before it is connected to every node.
      const replies = await Promise.all(
        calls.map((call) => eventually(() => store.lease([call])[0], 'each is answered', RECOVERY)),
      );
      expect(replies).toEqual(calls.map(() => expect.objectContaining({ granted: 3 * MICRO })));

      // ASK: the slot is on its way, and its keys are at the new owner already. That server is another than the one
      // that wrote them last, so they may be stale.
      const before = await ask(store, { key: 'moving', need: 4 * MICRO });
      const { slot, source, target } = await slotOf(prefix, 'moving');
      await target.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', source.id);
      await source.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', target.id);
      const keys = (await source.client.call('CLUSTER', 'GETKEYSINSLOT', slot, '10')) as string[];
      await source.client.call('MIGRATE', '127.0.0.1', String(target.server.port), '', '0', '1000', 'KEYS', ...keys);
      const asked = await ask(store, { key: 'moving', need: MICRO });
      expect(asked.era).not.toBe(before.era);
      expect(asked.granted).toBe(0);

      // MOVED: it has arrived, and the client does not know yet.
      for (const { client } of [target, source, ...cluster.masters])
        await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', target.id);
      expect(await ask(store, { key: 'moving' })).toMatchObject({ era: asked.era, incarnation: asked.incarnation });
    },
    60_000,
  );

  it('has each key in the slot that is computed for it', async () => {
    const [first] = cluster.masters as [RedisCluster['masters'][0]];
    for (const key of ['', 'a', '{hg:0}:h', '{hg:511}:b:api:{k}', '{}x', '}{', 'a{b}c{d}', 'käse/日本/🧀', '{{x}}']) {
      expect(clusterSlot(key)).toBe(await first.client.call('CLUSTER', 'KEYSLOT', key));
    }
  });

  it('is served by node-redis again once a replica has taken over, and nothing waits for a master that is away', async () => {
    const [library] = NODE_REDIS as [(typeof NODE_REDIS)[0]];
    const opened = library.cluster(cluster.ports);
    const store = await storeOf(opened, 'away');
    const before = await ask(store, { key: 'k' });
    const slot = clusterSlot(`{away:${partitionOf('api', 'k')}}:h`);
    const owner = cluster.masters[cluster.ownerOf(slot)] as RedisCluster['masters'][0];
    await owner.server.kill();
    await eventually(
      () =>
        ask(store, { key: 'k' }).then(
          () => false,
          (error: Error) => error.message.includes('Not sent'),
        ),
      'its calls are refused at once',
    );
    expect(store.ready).toBe(true);
    const after = await eventually(() => ask(store, { key: 'k' }), 'the replica answers', RECOVERY);
    expect(after.era).not.toBe(before.era);
  }, 60_000);
});
