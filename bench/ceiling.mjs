import { fileURLToPath } from 'node:url';
import { versionsOf } from './harness/machine.mjs';
import { PLAIN_BUCKET } from './harness/plain-bucket.mjs';
import { startRedis } from './harness/redis.mjs';
import { figure } from './harness/report.mjs';
import { shuffle, spread } from './harness/statistics.mjs';

export const summary = 'one lease call in Redis: server CPU, calls per second, bytes per bucket and holder';

/** The store as createLimiter makes it from a URL: its own connection, script and codec. Not part of the public API. */
const CEILING = fileURLToPath(new URL('../dist/ceiling/redis-ceiling.js', import.meta.url));

const MICRO = 1_000_000;
const RATE = 1_000;
const KEYS = 2_048;

export async function* run({ quick, progress }) {
  const { redisCeiling } = await import(CEILING);
  const redis = await startRedis();
  const store = await redisCeiling(redis.url, { newStore: 'full' });
  try {
    yield cpuPart(await serverCpu(redis, store, { rounds: quick ? 3 : 11, calls: quick ? 2_048 : 4_096, progress }));
    yield flowPart(await callsPerSecond(redis, store, { ms: quick ? 500 : 2_000, rounds: quick ? 1 : 3, progress }));
    progress('bytes');
    yield bytesPart(await bytesPerBucket(redis, store));
  } finally {
    await store.close();
    await redis.stop();
  }
}

/** One key's dealings as the keeper has them in a steady state: nine tenths spent, the next batch asked for. */
class Renewals {
  #seq = 0;
  #held = new Map();
  #holder;

  constructor(holder) {
    this.#holder = holder;
  }

  call(key) {
    const held = this.#held.get(key) ?? { balance: 0, incarnation: 0, certainUntil: 0, disown: 0 };
    this.#seq += 1;
    const unspent = Math.floor(held.balance / 10);
    return {
      policy: 'api',
      key,
      fence: 'api',
      version: 0,
      burst: RATE * MICRO,
      rateNum: RATE,
      rateDen: 1,
      inheritance: 'as-is',
      guard: 0,
      holder: this.#holder,
      seq: this.#seq,
      disown: held.disown,
      unspent,
      returned: 0,
      refund: 0,
      refundSince: 0,
      need: 0,
      head: 0,
      want: 20 * MICRO,
      demand: 100 * MICRO,
      weight: 1,
      lease: 2_000_000,
      sentAt: Date.now() * 1_000,
      since: 0,
      witness: 0,
      incarnation: held.incarnation,
      certainUntil: held.certainUntil,
    };
  }

  take(call, reply) {
    if (reply.status !== 'granted') {
      // On a machine that is busy with something else a call may be older than the store believes: as the keeper does.
      this.#held.set(call.key, { balance: 0, incarnation: 0, certainUntil: 0, disown: call.seq });
      return;
    }
    const { granted, incarnation, certainUntil } = reply;
    this.#held.set(call.key, { balance: call.unspent + granted, incarnation, certainUntil, disown: 0 });
  }
}

async function lease(store, renewals, keys) {
  const calls = keys.map((key) => renewals.call(key));
  const replies = await Promise.all(store.lease(calls));
  for (const [i, reply] of replies.entries()) renewals.take(calls[i], reply);
}

/** Microseconds of server time a key, as Redis itself counts them, each slice alone on the server. */
async function serverCpu(redis, store, { rounds, calls, progress }) {
  const keyOf = (i) => `tenant-${i % KEYS}`;
  const sha = await redis.client.script('LOAD', PLAIN_BUCKET);
  const plain = async () => {
    for (let i = 0; i < calls; i += 64) {
      const burst = Array.from({ length: 64 }, (_, j) =>
        redis.client.evalsha(sha, 1, `plain:${keyOf(i + j)}`, 1_000, 1_000, 1),
      );
      await Promise.all(burst);
    }
  };
  const holders = Array.from({ length: 20 }, (_, i) => new Renewals(`holder-of-bench-${String(i).padStart(2, '0')}`));
  const batched = (size, few) => async () => {
    for (let i = 0; i < calls; i += size) {
      const keys = Array.from({ length: size }, (_, j) => `${few}-${keyOf(i + j)}`);
      // All keys of a slice by one holder, the next slice by the next: every bucket comes to know all of them.
      await lease(store, holders[few === 1 ? 0 : Math.floor(i / KEYS + slice) % few], keys);
    }
    slice += 1;
  };
  let slice = 0;
  const slices = { plain };
  for (const few of [1, 20]) for (const size of [1, 16, 64]) slices[`${few}/${size}`] = batched(size, few);
  // Buckets and holders are all there before anything is counted.
  for (const make of Object.values(slices)) await make();
  for (let i = 0; i < 20; i++) await slices['20/64']();

  const micros = Object.fromEntries(Object.keys(slices).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    progress(`server CPU, round ${round + 1} of ${rounds}`);
    for (const name of shuffle(Object.keys(slices))) {
      await redis.client.config('RESETSTAT');
      await slices[name]();
      micros[name].push((await redis.commandStats()).evalsha.usec / calls);
    }
  }
  return Object.fromEntries(
    Object.entries(micros).map(([name, each]) => [
      name,
      { micros: spread(each), ratio: spread(each.map((value, i) => value / micros.plain[i])) },
    ]),
  );
}

/** Lease calls a second through the SDK's own connection and codec, one process asking. */
async function callsPerSecond(redis, store, { ms, rounds, progress }) {
  const results = {};
  for (const [size, outstanding] of [
    [1, 64],
    [16, 8],
    [64, 4],
  ]) {
    const each = [];
    for (let round = 0; round < rounds; round++) {
      progress(`calls per second, ${size} a script, round ${round + 1} of ${rounds}`);
      const renewals = Array.from(
        { length: outstanding },
        (_, i) => new Renewals(`flow-${size}-${round}-${i}-of-bench`),
      );
      const cpuBefore = process.cpuUsage();
      const serverBefore = await redis.cpuMicros();
      const start = performance.now();
      let calls = 0;
      await Promise.all(
        renewals.map(async (renewal, i) => {
          for (let at = i * 97; performance.now() - start < ms; at += size) {
            await lease(
              store,
              renewal,
              Array.from({ length: size }, (_, j) => `flow-${(at + j) % KEYS}`),
            );
            calls += size;
          }
        }),
      );
      const seconds = (performance.now() - start) / 1_000;
      const used = process.cpuUsage(cpuBefore);
      const server = (await redis.cpuMicros()) - serverBefore;
      each.push({
        perSecond: calls / seconds,
        clientMicros: (used.user + used.system) / calls,
        serverMicros: server / calls,
      });
    }
    results[size] = {
      outstanding,
      perSecond: spread(each.map(({ perSecond }) => perSecond)),
      clientMicros: spread(each.map(({ clientMicros }) => clientMicros)),
      serverMicros: spread(each.map(({ serverMicros }) => serverMicros)),
    };
  }
  return results;
}

async function bytesPerBucket(redis, store) {
  const { client } = redis;
  await client.flushall();
  const usage = async () => {
    const [key] = (await client.keys('*')).filter((name) => name.includes(':b:'));
    return Number(await client.memory('USAGE', key, 'SAMPLES', 0));
  };
  const holders = Array.from({ length: 100 }, (_, i) => new Renewals(`holder-number-${String(i).padStart(2, '0')}`));
  const by = {};
  for (const [i, holder] of holders.entries()) {
    await lease(store, holder, ['tenant-000000000000']);
    if ([0, 9, 19, 99].includes(i)) by[i + 1] = await usage();
  }
  await client.flushall();
  const before = Number((await client.info('memory')).match(/used_memory:(\d+)/)[1]);
  const many = 16_384;
  for (let i = 0; i < many; i += 64) {
    await lease(
      store,
      holders[0],
      Array.from({ length: 64 }, (_, j) => `tenant-${String(i + j).padStart(12, '0')}`),
    );
  }
  const all = Number((await client.info('memory')).match(/used_memory:(\d+)/)[1]) - before;
  const headers = (await client.keys('*')).filter((name) => name.endsWith(':h')).length;
  return { usageByHolders: by, all: all / many, headers };
}

function cpuPart(cpu) {
  const rows = Object.entries(cpu).map(([name, { micros, ratio }]) => {
    const [few, size] = name.split('/');
    const label =
      name === 'plain'
        ? 'plain token bucket: TIME, HMGET, HSET, PEXPIRE'
        : `lease call, ${few === '1' ? '1 holder' : `${few} holders`} a bucket, ${size} a script`;
    return [
      label,
      `${figure(ratio.median)}×`,
      `${figure(ratio.least)}–${figure(ratio.most)}`,
      figure(micros.median),
      `${figure(micros.least)}–${figure(micros.most)}`,
    ];
  });
  const [one, twenty] = ['1/16', '20/16'].map((name) => cpu[name].ratio.median);
  return {
    versions: versionsOf(['ioredis']),
    tables: [
      {
        caption: 'Server CPU a key (INFO commandstats)',
        head: ['', '× plain', 'over rounds', 'µs', 'over rounds'],
        rows,
      },
    ],
    goals: [
      {
        goal: 'a lease call, 16 or more a script ≤ 1 × the plain bucket',
        measured: `${figure(one)}×, ${figure(twenty)}× with 20 holders`,
        met: one <= 1 && twenty <= 1,
      },
    ],
    data: { cpu },
  };
}

function flowPart(throughput) {
  const rows = Object.entries(throughput).map(([size, { outstanding, perSecond, clientMicros, serverMicros }]) => [
    `${size} a script, ${outstanding} scripts outstanding`,
    figure(perSecond.median),
    `${figure(perSecond.least)}–${figure(perSecond.most)}`,
    figure(clientMicros.median),
    figure(serverMicros.median),
  ]);
  const best = Math.max(...Object.values(throughput).map(({ perSecond }) => perSecond.median));
  return {
    tables: [
      {
        caption: "Lease calls through the SDK's own connection, one process",
        head: ['', 'calls/s', 'over rounds', 'µs CPU client', 'µs CPU Redis'],
        rows,
      },
    ],
    goals: [{ goal: '≥ 20,000 lease calls/s from one process', measured: figure(best), met: best >= 20_000 }],
    data: { throughput },
  };
}

function bytesPart(bytes) {
  const { usageByHolders, all, headers } = bytes;
  const perHolder = (usageByHolders[100] - usageByHolders[20]) / 80;
  return {
    tables: [
      {
        caption: 'Bytes in Redis',
        head: ['', 'bytes'],
        rows: [
          ...Object.entries(usageByHolders).map(([holders, size]) => [
            `bucket with ${holders} holder${holders === '1' ? '' : 's'} (MEMORY USAGE)`,
            figure(size),
          ]),
          ['each holder over 20', figure(perHolder)],
          [`used_memory a bucket with 1 holder, over 16,384 (${headers} partition headers included)`, figure(all)],
        ],
      },
    ],
    data: { bytes },
  };
}
