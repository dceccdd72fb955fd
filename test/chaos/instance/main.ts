import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import { createLimiter, type Limiter, type RedisClient } from '../../../src/index.js';
import { Callers } from './callers.js';
import { monotonicNow } from './clock.js';
import type { InstanceOptions, InstanceReport, Order, RedisAddress } from './messages.js';

/** One process of the fleet. It does what the test tells it through its channel, and ends with the channel. */
class Instance {
  readonly #options: InstanceOptions;
  readonly #file: number;
  readonly #callers: Callers;
  readonly #limiters: Limiter[] = [];
  readonly #clients: { disconnect(): void }[] = [];
  readonly #troubles = new Set<string>();

  constructor(options: InstanceOptions) {
    this.#options = options;
    this.#file = openSync(options.admissionsFile, 'a');
    const policy = options.policies[0]?.name ?? '';
    this.#callers = new Callers(this.#file, policy, options.load);
  }

  async start(): Promise<void> {
    const { policies, limiters, group, name, natsPort } = this.#options;
    await Promise.all(
      Array.from({ length: limiters }, async (_, index) => {
        const { time, observer, take } = this.#callers.seat();
        const limiter = await createLimiter({
          policies,
          group,
          time,
          observer,
          instanceId: `${name}.${index}`,
          redis: this.#redis(),
          ...(natsPort && { nats: `nats://127.0.0.1:${natsPort}` }),
          onTrouble: (error) => this.#troubles.add(error.message),
        });
        take(limiter);
        this.#limiters.push(limiter);
      }),
    );
    this.#callers.start();
  }

  set load(load: InstanceOptions['load']) {
    this.#callers.load = load;
  }

  async publish(document: InstanceOptions['policies'][number]): Promise<number> {
    const policy = await this.#limiters[0]?.policies.publish(document);
    return policy?.version ?? 0;
  }

  report(): InstanceReport {
    const rows = this.#limiters.flatMap((limiter) => limiter.stats());
    const sum = (name: 'leaseCalls' | 'leaseFailures' | 'leaseRefusals' | 'tokensUnleased'): number =>
      rows.reduce((total, row) => total + row[name], 0);
    const { allowed, denied, longestWaitMs, storeChanges, policyChanges, unleased } = this.#callers;
    return {
      allowed,
      denied,
      longestWaitMs,
      storeChanges,
      policyChanges,
      unhandledRejections: unhandled,
      troubles: [...this.#troubles],
      leaseCalls: sum('leaseCalls'),
      leaseFailures: sum('leaseFailures'),
      leaseRefusals: sum('leaseRefusals'),
      tokensUnleased: sum('tokensUnleased'),
      ...(unleased && { unleased }),
      handles: handles(),
    };
  }

  async close(): Promise<InstanceReport> {
    this.#callers.stop();
    await Promise.all(this.#limiters.map((limiter) => limiter.close()));
    for (const client of this.#clients) client.disconnect();
    // Connections say goodbye. This wait is no handle: its timer is not one that a process is kept alive for.
    const patience = monotonicNow() + GOODBYE_MS;
    while (handles().length > 0 && monotonicNow() < patience) {
      await sleep(5, undefined, { ref: false });
      // ioredis: one that is asking for the cluster's slots when it is disconnected sets its timer for that once more.
      for (const client of this.#clients) if (client instanceof Cluster) client.disconnect();
    }
    const report = this.report();
    closeSync(this.#file);
    return report;
  }

  /** A client made as `docs/redis.md` tells its users to, where a URL can't say it. */
  #redis(): string | RedisClient {
    const { redis } = this.#options;
    if (redis.kind === 'server') return `redis://127.0.0.1:${redis.port}`;
    const client = clientOf(redis);
    client.on('error', () => {});
    this.#clients.push(client);
    return client;
  }
}

/** ioredis gives a server two seconds to end a connection, then ends it. */
const GOODBYE_MS = 2_500;
/** The channel to the test, and the standard streams. */
const QUIET = new Set(['PipeWrap', 'TTYWrap', 'FSReqCallback']);

function handles(): string[] {
  return process.getActiveResourcesInfo().filter((name) => !QUIET.has(name));
}

const SAFE_NODE = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  commandTimeout: 300,
  socketTimeout: 600,
  connectTimeout: 500,
} as const;
const SAFE = { ...SAFE_NODE, enableOfflineQueue: false } as const;

function clientOf(redis: Exclude<RedisAddress, { kind: 'server' }>): Redis | Cluster {
  const nodes = redis.ports.map((port) => ({ host: '127.0.0.1', port }));
  if (redis.kind === 'sentinel') {
    const { translated } = redis;
    return new Redis({
      ...SAFE,
      sentinels: nodes,
      name: redis.name,
      failoverDetector: true,
      retryStrategy: () => 100,
      sentinelRetryStrategy: () => 100,
      reconnectOnError: (error) => error.message.startsWith('READONLY'),
      ...(translated && { updateSentinels: false, natMap: natMapOf(translated) }),
    });
  }
  return new Cluster(nodes, {
    slotsRefreshInterval: 1_000,
    slotsRefreshTimeout: 500,
    clusterRetryStrategy: () => 100,
    enableOfflineQueue: false,
    redisOptions: SAFE_NODE,
  });
}

function natMapOf(translated: Readonly<Record<number, number>>): Record<string, { host: string; port: number }> {
  const entries = Object.entries(translated);
  return Object.fromEntries(entries.map(([from, port]) => [`127.0.0.1:${from}`, { host: '127.0.0.1', port }]));
}

/** Nothing else runs meanwhile, as when somebody sorts a large array. */
function block(forMs: number): void {
  const until = monotonicNow() + forMs;
  while (monotonicNow() < until);
}

const unhandled: string[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(String(reason)));

let instance: Instance | undefined;
process.on('disconnect', () => {
  // The test is gone. One that let go does so after `close`: then nothing must keep the process, and nothing helps it end.
  if (instance) process.exit(1);
});
process.on('message', (message: Order & { number: number }) => {
  handle(message).then(
    (answer) => process.send?.({ number: message.number, ...answer }),
    (error: unknown) => process.send?.({ number: message.number, error: String(error) }),
  );
});

async function handle(order: Order): Promise<object> {
  if (order.order === 'start') {
    unhandled.length = 0;
    instance = new Instance(order.options);
    await instance.start();
    return { report: instance.report() };
  }
  if (!instance) throw new Error('Not started');
  switch (order.order) {
    case 'load':
      instance.load = order.load;
      break;
    case 'block':
      block(order.forMs);
      break;
    case 'publish':
      return { version: await instance.publish(order.document) };
    case 'report':
      break;
    case 'close': {
      const report = await instance.close();
      instance = undefined;
      return { report };
    }
  }
  return { report: instance.report() };
}
