import { Cluster, type Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { beforeAll, describe, expect, it } from 'vitest';
import type { GrantReply, LeaseReply } from '../../src/ceiling/ceiling-store.js';
import { redisCeiling } from '../../src/ceiling/redis-ceiling.js';
import { CeilingError, InvalidOptionError } from '../../src/errors.js';
import { MICRO } from '../../src/units.js';
import { leaseCall } from '../contract/ceiling-store.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import type { RedisServer } from '../support/redis-server.js';
import { RedisTests } from '../support/redis-tests.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const tests = new RedisTests();
const { afterTest, ceiling, client, ownServer } = tests;

let server: RedisServer;
let admin: Redis;
beforeAll(() => {
  ({ server, admin } = tests);
});

async function commandCalls(redis: Redis): Promise<Record<string, number>> {
  const stats = await redis.info('commandstats');
  return Object.fromEntries(
    [...stats.matchAll(/cmdstat_(\S+):calls=(\d+)/g)].map(([, name, calls]) => [name, Number(calls)]),
  );
}

const granted = (reply: LeaseReply | undefined): number => (reply as GrantReply).granted;

describe('a lease call over Redis', () => {
  it('costs one EVALSHA for a tick of calls, and in it two reads and a write a call', async () => {
    const store = await ceiling(server.url);
    await Promise.all(store.lease([leaseCall()]));
    const calls = Array.from({ length: 40 }, () => leaseCall({ need: MICRO }));
    await Promise.all(store.lease(calls));
    await admin.config('RESETSTAT');
    await Promise.all(store.lease(calls.map((call) => ({ ...call, seq: call.seq + 1_000_000 }))));
    const { evalsha, eval: evals, time, info, hmget, hset, pexpire, ...others } = await commandCalls(admin);
    expect({ evalsha, evals, time, hmget, hset }).toEqual({
      evalsha: 1,
      evals: undefined,
      time: 1,
      hmget: 80,
      hset: 40,
    });
    // INFO only where a partition has not met this connection; all have.
    expect(info).toBeUndefined();
    expect(pexpire ?? 0).toBeLessThanOrEqual(40);
    expect(Object.keys(others)).toEqual(['config|resetstat']);
  });

  it('is sent before lease() returns, and many as scripts of at most 64', async () => {
    const redis = client(server.url);
    const store = await ceiling(redis);
    await Promise.all(store.lease([leaseCall()]));
    await admin.config('RESETSTAT');
    const sent: string[] = [];
    const { sendCommand } = redis;
    redis.sendCommand = function (this: Redis, ...args: Parameters<typeof sendCommand>) {
      sent.push(args[0].name);
      return sendCommand.apply(this, args);
    } as typeof sendCommand;
    const replies = store.lease(Array.from({ length: 130 }, () => leaseCall()));
    expect(sent).toEqual(['evalsha', 'evalsha', 'evalsha']);
    await Promise.all(replies);
  });

  it('sends the script again to a server that has forgotten it, once (C77)', async () => {
    const store = await ceiling(server.url);
    await Promise.all(store.lease([leaseCall()]));
    await admin.script('FLUSH');
    await admin.config('RESETSTAT');
    expect(granted(await store.lease([leaseCall({ need: MICRO })])[0])).toBe(MICRO);
    expect(granted(await store.lease([leaseCall({ need: MICRO })])[0])).toBe(MICRO);
    expect(await commandCalls(admin)).toMatchObject({ evalsha: 2, eval: 1 });
  });

  it('keeps a bucket with an expiry, and its header without (C92)', async () => {
    const store = await ceiling(server.url, { prefix: 'expiry' });
    const call = leaseCall({ need: 10 * MICRO, lease: 60_000_000 });
    const reply = (await store.lease([call])[0]) as GrantReply;
    const [bucket] = await admin.keys('{expiry:*}:b:*');
    const [header] = await admin.keys('{expiry:*}:h');
    const ttl = await admin.pttl(bucket as string);
    expect(ttl).toBeGreaterThan(60_000);
    // Never shorter than what the reply promises.
    expect(ttl * 1_000).toBeGreaterThanOrEqual(reply.certainUntil - reply.now - 100_000);
    expect(await admin.pttl(header as string)).toBe(-1);
  });

  it.each([
    ['braces', '{other}'],
    ['an empty tag', '{}x'],
    ['a closing brace first', '}{'],
    ['colons', 'a:b:{c}:'],
    ['spaces and line ends', 'a b\r\n*3\r\n'],
    ['other scripts', 'käse/日本/🧀'],
    ['a zero', 'a\0b'],
    ['512 bytes', 'x'.repeat(512)],
  ])('keeps a key with %s in the slot of its header, and apart from others (C98)', async (_, key) => {
    await admin.flushall();
    const store = await ceiling(server.url);
    const [one, two] = await Promise.all(
      store.lease([leaseCall({ key, need: 9 * MICRO }), leaseCall({ key: `${key}.`, need: 9 * MICRO })]),
    );
    expect([granted(one), granted(two)]).toEqual([9 * MICRO, 9 * MICRO]);
    expect((await store.lease([leaseCall({ key })])[0]) as GrantReply).toMatchObject({
      incarnation: (one as GrantReply).incarnation,
    });
    const names = await admin.keys('*:b:*');
    const headers = await admin.keys('*:h');
    expect(names.map((name) => name.slice(name.indexOf(':b:api:') + 7)).sort()).toEqual([key, `${key}.`].sort());
    for (const name of names) expect(headers).toContain(`${/^\{[^{}]+\}/.exec(name)?.[0]}:h`);
  });

  it.each([
    ['10 in 600.001 s', 10_000, 600_001],
    ['3 in 0.7 s', 30, 7],
    ['7 in a third of a second', 21, 1],
    ['1 in 100 years', 1, 3_155_760_000],
  ])('gives a bucket of %s an expiry that Redis takes (C95)', async (_, rateNum, rateDen) => {
    await admin.flushall();
    const store = await ceiling(server.url);
    const [reply] = await Promise.all(store.lease([leaseCall({ rateNum, rateDen, need: 10 * MICRO })]));
    expect(granted(reply)).toBe(10 * MICRO);
    const [bucket] = await admin.keys('*:b:*');
    expect(await admin.pttl(bucket as string)).toBeGreaterThan(0);
  });

  it('grants a fresh key that many ask for at once exactly what there is (C103)', async () => {
    await admin.flushall();
    const stores = await Promise.all([1, 2, 3, 4].map(() => ceiling(server.url)));
    const calls = stores.flatMap((store) =>
      store.lease(Array.from({ length: 50 }, () => leaseCall({ key: 'fresh', need: MICRO }))),
    );
    const replies = await Promise.all(calls);
    expect(replies.reduce((sum, reply) => sum + granted(reply), 0)).toBe(10 * MICRO);
  });

  it('rejects calls for a key that holds something else, and names what is wrong (C100)', async () => {
    await admin.flushall();
    const store = await ceiling(server.url);
    await Promise.all(store.lease([leaseCall({ key: 'spoilt', need: MICRO })]));
    const [bucket] = await admin.keys('*:b:*');
    await admin.del(bucket as string);
    await admin.rpush(bucket as string, 'something else');
    await expect(store.lease([leaseCall({ key: 'spoilt' })])[0]).rejects.toThrow(CeilingError);
    await admin.del(bucket as string);
    expect(granted(await store.lease([leaseCall({ key: 'spoilt', need: MICRO })])[0])).toBe(MICRO);
  });

  it('rejects what is not a lease call, and no other of the same tick', async () => {
    const store = await ceiling(server.url);
    const [bad, good, worse] = store.lease([
      leaseCall({ need: Number.NaN }),
      leaseCall({ need: MICRO }),
      leaseCall({ holder: 'b' }),
    ]);
    await expect(bad).rejects.toThrow('Expected `need` of a lease call to be a non-negative whole number, got NaN.');
    await expect(worse).rejects.toThrow(CeilingError);
    expect(granted(await good)).toBe(MICRO);
  });

  it('rejects when the server answers with an error, which is its cause, and does not try again (C85, C101)', async () => {
    const replica = await ownServer({ args: ['--replicaof', '127.0.0.1', String(server.port)] });
    const store = await ceiling(client(replica.url));
    const refused = await store.lease([leaseCall()])[0]?.catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(CeilingError);
    expect(String((refused as CeilingError).cause)).toContain('READONLY');
  });
});

describe('data that may be stale', () => {
  async function spendAll(store: Awaited<ReturnType<typeof ceiling>>, key: string): Promise<GrantReply> {
    return (await store.lease([leaseCall({ key, need: 10 * MICRO })])[0]) as GrantReply;
  }

  it.each(['a client of ours', 'a client of theirs'])('is not handed out again after a restart (%s)', async (whose) => {
    const own = await ownServer({ appendonly: true });
    const store = await ceiling(whose === 'a client of ours' ? own.url : client(own.url));
    const before = await spendAll(store, 'restarted');
    // Full in this server's data, never called: the untouched level of its partition.
    const untouched = await store.lease([leaseCall({ key: 'other', need: 0 })])[0];
    await own.restart({ keepData: true });
    await eventually(() => store.ready, 'connected anew', { deadlineMs: 10_000 });
    const after = (await store.lease([leaseCall({ key: 'other', need: MICRO })])[0]) as GrantReply;
    expect(after.era).not.toBe(untouched?.era);
    expect(after.granted).toBe(0);
    expect((await spendAll(store, 'restarted')).era).not.toBe(before.era);
    // Each partition is suspected once.
    expect((await spendAll(store, 'restarted')).era).toBe((await spendAll(store, 'restarted')).era);
  });

  it('is noticed behind a name that leads to a promoted replica (C91)', async () => {
    const primary = await ownServer({ args: ['--repl-diskless-sync-delay', '0'] });
    const replica = await ownServer({ args: ['--replicaof', '127.0.0.1', String(primary.port)] });
    const proxy = await TcpProxy.start({ targetPort: primary.port });
    afterTest(() => proxy.stop());
    const store = await ceiling(`redis://127.0.0.1:${proxy.port}`);
    const before = (await store.lease([leaseCall({ key: 'moved', need: MICRO })])[0]) as GrantReply;
    const second = client(replica.url);
    await eventually(async () => (await second.keys('*')).length === 2, 'the replica has it');

    await second.replicaof('NO', 'ONE');
    proxy.retarget(replica.port);
    proxy.cut();

    const after = await eventually(
      () => store.lease([leaseCall({ key: 'moved', need: MICRO })])[0],
      'the new primary answers',
      { deadlineMs: 10_000 },
    );
    expect(after?.era).not.toBe(before.era);
    expect(granted(after)).toBe(0);
  });
});

describe('a connection of ours', () => {
  it('neither queues a call nor sends it again', async () => {
    const proxy = await TcpProxy.start({ targetPort: server.port });
    afterTest(() => proxy.stop());
    const store = await ceiling(
      `redis://127.0.0.1:${proxy.port}?autoResendUnfulfilledCommands=true&enableOfflineQueue=true`,
    );
    await Promise.all(store.lease([leaseCall()]));
    await admin.config('RESETSTAT');

    proxy.hold('toClient');
    const lost = store.lease([leaseCall({ need: MICRO })])[0];
    await eventually(() => proxy.heldBytes('toClient') > 0, 'it was executed, and its reply is on the way');
    await proxy.refuseConnections();
    proxy.cut();
    await expect(lost).rejects.toThrow(CeilingError);
    expect(store.ready).toBe(false);
    await expect(store.lease([leaseCall()])[0]).rejects.toThrow('not ready');
    await expect(store.heartbeat('group', 'one')).rejects.toThrow('not ready');

    await proxy.heal();
    await eventually(() => store.ready, 'connected anew', { deadlineMs: 10_000 });
    expect((await commandCalls(admin))['evalsha']).toBe(1);
  });

  it('does not fail when nobody is there yet, and finds the server when it comes', async () => {
    const port = await freePort();
    const store = await redisCeiling(`redis://127.0.0.1:${port}`);
    afterTest(() => store.close());
    expect(store.ready).toBe(false);
    await ownServer({ port });
    await eventually(() => store.ready, 'connected', { deadlineMs: 10_000 });
    expect(await store.heartbeat('group', 'one')).toBe(1);
  });

  it('gives a frozen server up, and goes on when it is back', async () => {
    const own = await ownServer();
    const store = await ceiling(own.url);
    await own.pause();
    await expect(store.lease([leaseCall()])[0]).rejects.toThrow(CeilingError);
    own.resume();
    await eventually(() => store.lease([leaseCall()])[0], 'it answers again', { deadlineMs: 10_000 });
  });

  it('is closed with the store, once', async () => {
    const own = await ownServer();
    const watcher = client(own.url);
    const store = await redisCeiling(own.url);
    await eventually(
      async () => ((await watcher.client('LIST')) as string).trim().split('\n').length === 2,
      'two of us',
    );
    await store.close();
    await store.close();
    await eventually(
      async () => ((await watcher.client('LIST')) as string).trim().split('\n').length === 1,
      'one of us',
    );
    await expect(store.lease([leaseCall()])[0]).rejects.toThrow('closed');
  });

  it.each(['http://127.0.0.1', 'localhost:6379', ':secret@'])(
    'is refused for a URL such as %s, untold',
    async (url) => {
      const error = await redisCeiling(url).catch((error: unknown) => error);
      expect(error).toBeInstanceOf(InvalidOptionError);
      expect(String(error)).not.toContain('secret');
    },
  );
});

describe('a client of theirs', () => {
  it('is left open and without listeners of ours', async () => {
    const redis = client(server.url);
    const counts = () => redis.eventNames().map((name) => [name, redis.listenerCount(name)]);
    await redis.ping();
    const before = counts();
    const store = await redisCeiling(redis);
    await Promise.all(store.lease([leaseCall()]));
    await store.close();
    expect(counts()).toEqual(before);
    expect(await redis.ping()).toBe('PONG');
  });

  it('may be any that has the methods, and is refused where it has not', async () => {
    const redis5 = new Redis5(server.url);
    afterTest(() => redis5.disconnect());
    expect(granted(await (await ceiling(redis5)).lease([leaseCall({ need: MICRO })])[0])).toBe(MICRO);
    await expect(redisCeiling({ status: 'ready' } as never)).rejects.toThrow(InvalidOptionError);
  });

  it('may be a Cluster: calls go to the node of their partition (C76)', async () => {
    const args = ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'];
    const nodes = [await ownServer({ args }), await ownServer({ args })] as const;
    const clients = nodes.map(({ url }) => client(url));
    await clients[0]?.cluster('ADDSLOTSRANGE', 0, 8_191);
    await clients[1]?.cluster('ADDSLOTSRANGE', 8_192, 16_383);
    await clients[0]?.cluster('MEET', '127.0.0.1', nodes[1].port);
    for (const node of clients) {
      await eventually(async () => ((await node.cluster('INFO')) as string).includes('cluster_state:ok'), 'a cluster');
    }
    const cluster = new Cluster([{ host: '127.0.0.1', port: nodes[0].port }]);
    afterTest(() => cluster.disconnect());
    const store = await ceiling(cluster);
    const calls = Array.from({ length: 200 }, () => leaseCall({ need: 3 * MICRO }));
    const replies = await Promise.all(store.lease(calls));
    expect(replies.map(granted)).toEqual(calls.map(({ need }) => need));
    const again = await Promise.all(store.lease(calls));
    expect(again.map(granted)).toEqual(calls.map(({ need }) => need));
    for (const node of clients) expect((await node.keys('{hg:*}:b:*')).length).toBeGreaterThan(50);
    expect(await store.heartbeat('group', 'one')).toBe(1);
  });
});

describe('trouble with the server', () => {
  it('is told where an eviction policy may drop buckets', async () => {
    const own = await ownServer({ args: ['--maxmemory', '100mb', '--maxmemory-policy', 'volatile-lru'] });
    const troubles: CeilingError[] = [];
    await ceiling(own.url, { onTrouble: (error) => troubles.push(error) });
    await eventually(() => troubles.length === 1, 'it is told');
    expect(troubles[0]?.message).toContain('maxmemory-policy');
  });

  it('is told where INFO is not permitted, and the ceiling works all the same', async () => {
    const own = await ownServer();
    const root = client(own.url);
    await root.acl('SETUSER', 'blind', 'on', '>pw', '~*', '+@all', '-info');
    const troubles: CeilingError[] = [];
    const store = await ceiling(`redis://blind:pw@127.0.0.1:${own.port}`, {
      onTrouble: (error) => troubles.push(error),
    });
    await eventually(() => troubles.length === 1, 'it is told');
    expect(troubles[0]?.message).toContain('may not call INFO');
    await root.acl('LOG', 'RESET');
    expect(granted(await store.lease([leaseCall({ need: MICRO })])[0])).toBe(MICRO);
    expect(await root.acl('LOG')).toEqual([]);
  });

  it('is none with noeviction, and with the least that a user must be permitted', async () => {
    const own = await ownServer({ args: ['--maxmemory', '100mb', '--maxmemory-policy', 'noeviction'] });
    const root = client(own.url);
    const commands =
      'evalsha eval info time hmget hset hget hgetall hscan hdel unlink pexpire ' +
      'zadd zrangebyscore zremrangebyscore zrem zscore zcard';
    await root.acl(
      'SETUSER',
      'least',
      'on',
      '>pw',
      'resetkeys',
      '~{hg:*',
      '-@all',
      ...commands.split(' ').map((name) => `+${name}`),
    );
    const troubles: CeilingError[] = [];
    const store = await ceiling(`redis://least:pw@127.0.0.1:${own.port}`, {
      onTrouble: (error) => troubles.push(error),
    });
    await root.acl('LOG', 'RESET');
    const call = leaseCall({ need: MICRO });
    expect(granted(await store.lease([call])[0])).toBe(MICRO);
    await store.marks.mark({ kind: 'block', policy: 'api', key: 'k', steps: [1_000], forgetAfter: 0 });
    expect((await store.marks.feed('', 0, false)).marks).toHaveLength(1);
    expect(await store.heartbeat('group', 'one')).toBe(1);
    expect(troubles).toEqual([]);
    expect(await root.acl('LOG')).toEqual([]);
  });
});
