import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5';
import { Redis as Valkey, Cluster as ValkeyCluster } from 'iovalkey';
import { createClient, createCluster, createSentinel } from 'redis';
import {
  createClient as createClient5,
  createCluster as createCluster5,
  createSentinel as createSentinel5,
} from 'redis5';
import type { GivenRedisClient } from '../../src/ceiling/node-redis.js';

/** A client as its owner has it. */
export interface Opened {
  readonly redis: GivenRedisClient;
  /** What its owner does before it is given away, where the library wants that. Settles even where nobody is there. */
  connect(): Promise<unknown>;
  close(): unknown;
}

export interface ClientLibrary {
  readonly name: string;
  standalone(port: number): Opened;
  sentinel(master: string, ports: readonly number[]): Opened;
  cluster(ports: readonly number[]): Opened;
}

const host = '127.0.0.1';
const at = (ports: readonly number[]) => ports.map((port) => ({ host, port }));

/** As docs/redis-clients.md has it, but that node-redis may queue: an application may want it to. */
const IOREDIS = { commandTimeout: 1_000, socketTimeout: 1_500, connectTimeout: 2_000 };
const NODE_REDIS = {
  pingInterval: 500,
  socket: {
    connectTimeout: 2_000,
    socketTimeout: 1_500,
    reconnectStrategy: (retries: number) => Math.min(50 * 2 ** retries, 2_000),
  },
};

/** ioredis and those that are like it: what differs is who made them. */
function ioredis(
  name: string,
  classes: { Redis: typeof Redis5 | typeof Redis; Cluster: typeof Cluster5 | typeof Cluster },
): ClientLibrary {
  const make = classes as { Redis: typeof Redis; Cluster: typeof Cluster };
  const opened = (redis: Redis | Cluster): Opened => {
    redis.on('error', () => {});
    return { redis, connect: async () => {}, close: () => redis.disconnect() };
  };
  return {
    name,
    standalone: (port) => opened(new make.Redis({ host, port, ...IOREDIS })),
    sentinel: (master, ports) =>
      opened(new make.Redis({ sentinels: at(ports), name: master, failoverDetector: true, ...IOREDIS })),
    cluster: (ports) =>
      opened(
        new make.Cluster(at(ports), { slotsRefreshInterval: 1_000, slotsRefreshTimeout: 500, redisOptions: IOREDIS }),
      ),
  };
}

interface NodeRedisFactories {
  createClient: typeof createClient;
  createSentinel: typeof createSentinel;
  createCluster: typeof createCluster;
}

function nodeRedis(name: string, make: NodeRedisFactories): ClientLibrary {
  const opened = (client: {
    readonly isOpen: boolean;
    on(event: 'error', listener: () => void): unknown;
    connect(): Promise<unknown>;
    destroy(): unknown;
  }): Opened => ({
    redis: client as unknown as GivenRedisClient,
    connect: () => client.connect().catch(() => {}),
    close: () => client.isOpen && client.destroy(),
  });
  return {
    name,
    standalone: (port) => opened(make.createClient({ ...NODE_REDIS, socket: { ...NODE_REDIS.socket, host, port } })),
    sentinel: (master, ports) =>
      opened(
        make.createSentinel({
          name: master,
          sentinelRootNodes: at(ports),
          scanInterval: 1_000,
          nodeClientOptions: NODE_REDIS,
        }),
      ),
    cluster: (ports) =>
      opened(make.createCluster({ rootNodes: at(ports).map((socket) => ({ socket })), defaults: NODE_REDIS })),
  };
}

/** Every client that may be given as `redis`, connecting as we ask of those who give us one. */
export const LIBRARIES: readonly ClientLibrary[] = [
  ioredis('ioredis 6', { Redis, Cluster }),
  ioredis('ioredis 5', { Redis: Redis5, Cluster: Cluster5 }),
  ioredis('iovalkey', {
    Redis: Valkey as unknown as typeof Redis5,
    Cluster: ValkeyCluster as unknown as typeof Cluster5,
  }),
  nodeRedis('node-redis 6', { createClient, createSentinel, createCluster }),
  nodeRedis('node-redis 5', {
    createClient: createClient5,
    createSentinel: createSentinel5,
    createCluster: createCluster5,
  } as unknown as NodeRedisFactories),
];
