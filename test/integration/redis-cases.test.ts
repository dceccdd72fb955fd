import type { Redis } from 'ioredis';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { GrantReply, LeaseReply } from '../../src/ceiling/ceiling-store.js';
import type { RedisClient } from '../../src/ceiling/redis-client.js';
import { CeilingError } from '../../src/errors.js';
import { createLimiter } from '../../src/index.js';
import { memoryPolicySource } from '../../src/testing.js';
import { MICRO } from '../../src/units.js';
import { leaseCall } from '../contract/ceiling-store.js';
import { paceCall } from '../contract/pace-store.js';
import { seatCall } from '../contract/seat-store.js';
import { eventually } from '../support/eventually.js';
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
beforeEach(() => admin.flushall());

const granted = (reply: LeaseReply | undefined): number => (reply as GrantReply).granted;

/** A primary, and a replica that gets its data through a proxy of its own; and the proxy that clients come through. */
async function replicated() {
  const primary = await ownServer({ args: ['--repl-diskless-sync-delay', '0'] });
  const replication = await TcpProxy.start({ targetPort: primary.port });
  const replica = await ownServer({ args: ['--replicaof', '127.0.0.1', String(replication.port)] });
  const endpoint = await TcpProxy.start({ targetPort: primary.port });
  afterTest(
    () => replication.stop(),
    () => endpoint.stop(),
  );
  const second = client(replica.url);
  await eventually(async () => (await second.info('replication')).includes('master_link_status:up'), 'it follows');
  const promote = async (): Promise<void> => {
    await second.replicaof('NO', 'ONE');
    endpoint.retarget(replica.port);
  };
  return { primary, replication, replica, endpoint, second, promote };
}

describe('a bucket’s key', () => {
  it('that is exhausted and has no expiry admits again when it is refilled, and gets one (C92)', async () => {
    const store = await ceiling(server.url);
    const terms = { rateNum: 20, rateDen: 1, burst: 10 * MICRO };
    expect(granted(await store.lease([leaseCall({ key: 'kept', ...terms, need: 10 * MICRO, lease: 50_000 })])[0])).toBe(
      10 * MICRO,
    );
    const [bucket] = (await admin.keys('*:b:*')) as [string];
    await admin.persist(bucket);
    expect(await admin.pttl(bucket)).toBe(-1);
    await eventually(
      async () => granted(await store.lease([leaseCall({ key: 'kept', ...terms, need: MICRO })])[0]) === MICRO,
      'it admits again',
    );
    expect(await admin.pttl(bucket)).toBeGreaterThan(0);
  });

  it('or its header, of which anything is missing or spoilt, gives an error or no more than the burst (C100)', async () => {
    const store = await ceiling(server.url);
    const holder = 'holder-of-spoilt';
    const ask = (seq: number) => store.lease([leaseCall({ key: 'spoilt', holder, seq, need: MICRO })])[0];
    const spoilers: [string, (key: string, field: string) => Promise<unknown>][] = [
      ['deleted', (key, field) => admin.hdel(key, field)],
      ['empty', (key, field) => admin.hset(key, field, '')],
      ['text', (key, field) => admin.hset(key, field, 'abc')],
    ];
    await ask(1);
    const keys = [...(await admin.keys('*:b:*')), ...(await admin.keys('*:h'))];
    const fields = await Promise.all(keys.map(async (key) => [key, await admin.hkeys(key)] as const));
    let looked = 0;
    for (const [key, names] of fields) {
      for (const field of names) {
        for (const [how, spoil] of spoilers) {
          await admin.flushall();
          expect(granted(await ask(1)), 'before').toBe(MICRO);
          await spoil(key, field);
          looked += 1;
          let taken = MICRO;
          for (let seq = 2; seq < 14; seq++) {
            const reply = await ask(seq)?.catch((error: unknown) => error);
            if (reply instanceof CeilingError) break;
            expect((reply as LeaseReply).status, `${field} ${how}`).toBe('granted');
            taken += granted(reply as LeaseReply);
          }
          // What has been granted before may be forgotten with what said so: never more than a burst beside it.
          expect(taken, `${field} ${how}`).toBeLessThanOrEqual(11 * MICRO);
        }
      }
    }
    expect(looked).toBeGreaterThanOrEqual(3 * 6);
  });

  it('that is spoilt fails alone: calls that travel with it are served, and served once (C100)', async () => {
    const store = await ceiling(server.url);
    await Promise.all(store.lease([leaseCall({ key: 'spoilt' })]));
    const [bucket] = (await admin.keys('*:b:*')) as [string];
    for (const spoil of [() => admin.hset(bucket, 't', 'abc'), () => replaceByList(bucket)]) {
      await spoil();
      const others = Array.from({ length: 70 }, () => leaseCall({ need: 4 * MICRO }));
      const replies = store.lease([...others.slice(0, 35), leaseCall({ key: 'spoilt' }), ...others.slice(35)]);
      const [spoilt] = replies.splice(35, 1);
      await expect(spoilt).rejects.toThrow(CeilingError);
      expect((await Promise.all(replies)).map(granted)).toEqual(Array(70).fill(4 * MICRO));
      // Six of ten are left to each of them.
      const rest = others.map(({ key }) => leaseCall({ key, need: 6 * MICRO }));
      expect((await Promise.all(store.lease(rest))).map(granted)).toEqual(Array(70).fill(6 * MICRO));
      await admin.del(bucket);
    }
  });

  it('that is spoilt fails alone among seats and slots too, and nobody is served twice (C100)', async () => {
    const store = await ceiling(server.url);
    await Promise.all([
      store.seats.hold([seatCall({ key: 'spoilt' })])[0],
      store.pacer.pace([paceCall({ key: 'spoilt' })])[0],
    ]);
    for (const key of [...(await admin.keys('*:s:*')), ...(await admin.keys('*:p:*'))]) await replaceByList(key);

    const seats = Array.from({ length: 20 }, () => seatCall({ want: 4 }));
    const [spoiltSeat, ...held] = store.seats.hold([seatCall({ key: 'spoilt' }), ...seats]);
    await expect(spoiltSeat).rejects.toThrow(CeilingError);
    expect((await Promise.all(held)).map(({ granted, taken }) => [granted, taken])).toEqual(Array(20).fill([4, 4]));

    const waits = Array.from({ length: 20 }, () => paceCall({ costs: [MICRO, MICRO] }));
    const paced = store.pacer.pace([...waits, paceCall({ key: 'spoilt' })]);
    await expect(paced.pop()).rejects.toThrow(CeilingError);
    for (const { now, slots } of await Promise.all(paced)) {
      expect(slots.length).toBe(2);
      // The first goes at once, as it does where nobody has come before.
      expect(slots[0]).toBeLessThanOrEqual(now);
    }
  });

  async function replaceByList(key: string): Promise<void> {
    await admin.del(key);
    await admin.rpush(key, 'something else');
  }
});

describe('a server’s error', () => {
  const OTHERS = [
    "READONLY You can't write against a read only replica.",
    "READONLY You can't write against a read only replica. script: 371c, on @user_script:1.",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "OOM allow-oom flag is not set on the script, can't run it when used memory > 'maxmemory'",
    'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
    'BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
    'LOADING Redis is loading the dataset in memory',
    'LOADING Valkey is loading the dataset in memory',
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    'NOREPLICAS Not enough good replicas to write.',
    'CLUSTERDOWN The cluster is down',
  ];

  /** A client that answers EVALSHA with an error, and EVAL with what it is told to; and how often each was called. */
  function answering(error: string) {
    const calls = { evalsha: 0, eval: 0 };
    const stub = {
      status: 'ready',
      evalsha: async () => {
        calls.evalsha += 1;
        throw new Error(error);
      },
      eval: async () => {
        calls.eval += 1;
        return 1;
      },
      callBuffer: async (command: 'evalsha' | 'eval') => stub[command](),
      info: async () => '',
      on: () => {},
      removeListener: () => {},
    };
    return { calls, client: stub as unknown as RedisClient };
  }

  it.each(['NOSCRIPT No matching script. Please use EVAL.', 'NOSCRIPT in other words'])(
    'brings the script where it says: %s (C101)',
    async (words) => {
      const { calls, client } = answering(words);
      const store = await ceiling(client);
      expect(await store.heartbeat('group', 'one')).toBe(1);
      expect(calls).toEqual({ evalsha: 1, eval: 1 });
    },
  );

  it.each(OTHERS)('is no reason to run anything again where it says: %s (C101)', async (words) => {
    const { calls, client } = answering(words);
    const store = await ceiling(client);
    const replies = store.lease([leaseCall(), leaseCall()]);
    for (const reply of replies) await expect(reply).rejects.toThrow(CeilingError);
    expect(calls).toEqual({ evalsha: 1, eval: 0 });
  });
});

describe('policies', () => {
  it('that change two hundred times under traffic leave no connection behind (C73)', async () => {
    const watcher = client(server.url);
    const limiter = await createLimiter({
      redis: server.url,
      policySource: memoryPolicySource(),
      policies: [{ name: 'api', ceiling: { rate: 1_000, burst: 1_000 } }],
      telemetry: false,
    });
    afterTest(() => limiter.close());
    const connections = async (): Promise<number> =>
      String(await watcher.client('LIST'))
        .trim()
        .split('\n').length;
    const handles = (): number => process.getActiveResourcesInfo().filter((name) => name !== 'Timeout').length;
    await eventually(async () => (await limiter.policy('api').acquire('k')).allowed || true, 'there is traffic');
    const before = [await connections(), handles()];
    for (let i = 1; i <= 200; i++) {
      await limiter.policies.publish({ name: 'api', ceiling: { rate: 1_000 + i, burst: 1_000 } });
      await limiter.policies.publish({ name: `added-${i % 5}`, ceiling: { rate: i, burst: 10 } });
      await limiter.policy('api').acquire('k');
    }
    expect([await connections(), handles()]).toEqual(before);
  });
});

describe('a failover', () => {
  it('to a replica that lacks the last writes gives away no more than these, and takes nothing old back (C91)', async () => {
    const { replication, endpoint, second, promote } = await replicated();
    const store = await ceiling(`redis://127.0.0.1:${endpoint.port}`);
    // A thousand a minute.
    const terms = { key: 'drained', burst: 1_000 * MICRO, rateNum: 50, rateDen: 3, lease: 60_000_000 };
    const holder = 'holder-of-leases';
    const first = (await store.lease([leaseCall({ ...terms, holder, need: 400 * MICRO })])[0]) as GrantReply;
    await eventually(async () => (await second.keys('*:b:*')).length === 1, 'the replica has the first of it');
    replication.hold();
    const { now } = (await store.lease([leaseCall()])[0]) as GrantReply;
    const unspent = first.granted;
    const rest = (await store.lease([
      leaseCall({ ...terms, holder, unspent, need: 600 * MICRO, sentAt: now }),
    ])[0]) as GrantReply;
    expect(first.granted + rest.granted).toBe(1_000 * MICRO);

    await promote();
    endpoint.cut();
    const ask = (changes: object) => store.lease([leaseCall({ ...terms, ...changes })])[0];
    const after = (await eventually(() => ask({ need: 600 * MICRO }), 'the new primary answers', {
      deadlineMs: 10_000,
    })) as GrantReply;
    expect(after.era).not.toBe(rest.era);
    // What the lost leases return is not there for others: nobody gets more than has been earned since.
    await ask({ holder, returned: 1_000 * MICRO, sentAt: after.now });
    const stranger = await ask({ need: MICRO, want: 1_000 * MICRO });
    expect(after.granted).toBe(0);
    expect(granted(stranger)).toBeLessThanOrEqual(100 * MICRO);
  });

  it('that makes the primary a replica is over in two seconds for a limiter, which charges nothing twice (C85)', async () => {
    const { primary, replica, endpoint, promote } = await replicated();
    const limiter = await createLimiter({
      redis: `redis://127.0.0.1:${endpoint.port}`,
      policies: [{ name: 'api', ceiling: { rate: 100, burst: 100 }, lease: { durationMs: 200 } }],
      telemetry: false,
      onTrouble: () => {},
    });
    afterTest(() => limiter.close());
    const api = limiter.policy('api');
    await eventually(async () => (await api.acquire('k')).allowed, 'it admits', { everyMs: 20 });

    await promote();
    await client(primary.url).replicaof('127.0.0.1', replica.port);
    const switchedAt = performance.now();
    // For longer than what is in hand lasts.
    await eventually(async () => !(await api.acquire('k')).allowed, 'what it held is spent or over', { everyMs: 1 });
    await eventually(async () => (await api.acquire('k')).allowed, 'it admits again', { everyMs: 5 });
    expect(performance.now() - switchedAt).toBeLessThan(2_000);
    const [stats] = limiter.stats();
    expect(stats?.tokensSpent).toBe(stats?.allowed);
  });
});
