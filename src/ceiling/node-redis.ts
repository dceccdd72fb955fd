import type { RedisClient, ScriptArgument } from './redis-client.js';

/** With what each command goes out. */
export interface NodeRedisCommandOptions {
  /** Looked at before the command is sent, the first time and again. */
  readonly abortSignal?: AbortSignal;
  /** How replies are told, in place of what the client was made with. */
  readonly typeMapping?: Readonly<Record<number, unknown>>;
}

interface Events {
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

interface Common extends Events {
  readonly isOpen: boolean;
  /** What tells these clients from those of node-redis 4, whose commands take no signal. */
  withCommandOptions(options: object): unknown;
}

/** What `createClient` of node-redis 5 and 6 makes. */
export interface NodeRedisStandalone extends Common {
  readonly isReady: boolean;
  sendCommand(args: readonly ScriptArgument[], options?: NodeRedisCommandOptions): Promise<unknown>;
}

/** What `createSentinel` makes. */
export interface NodeRedisSentinel extends Common {
  readonly isReady: boolean;
  /** `undefined` while there is no connection to a master. */
  getMasterNode(): object | undefined;
  sendCommand(
    isReadonly: boolean,
    args: readonly ScriptArgument[],
    options?: NodeRedisCommandOptions,
  ): Promise<unknown>;
}

/** One master of a cluster; without a client where none was needed yet. */
export interface NodeRedisMaster {
  readonly client?: { readonly isReady: boolean } | undefined;
}

/** What `createCluster` makes. */
export interface NodeRedisCluster extends Common {
  readonly masters: readonly NodeRedisMaster[];
  /** By slot; empty until the cluster is known. */
  readonly slots: readonly { readonly master: NodeRedisMaster }[];
  nodeClient(node: NodeRedisMaster): Promise<Pick<NodeRedisStandalone, 'sendCommand'>>;
  sendCommand(
    firstKey: string,
    isReadonly: boolean,
    args: readonly ScriptArgument[],
    options?: NodeRedisCommandOptions,
  ): Promise<unknown>;
}

/** A client of node-redis (`redis`), 5 or 6. Asked for by shape and never by class. */
export type NodeRedis = NodeRedisStandalone | NodeRedisSentinel | NodeRedisCluster;

/** What may be given as `redis`: a client of ioredis or iovalkey, or one of node-redis. */
export type GivenRedisClient = RedisClient | NodeRedis;

export function isNodeRedis(value: unknown): value is NodeRedis {
  if (typeof value !== 'object' || value === null) return false;
  const client = value as Record<string, unknown>;
  const methods = ['sendCommand', 'withCommandOptions', 'on', 'off'];
  if (typeof client['isOpen'] !== 'boolean' || !methods.every((name) => typeof client[name] === 'function'))
    return false;
  return typeof client['isReady'] === 'boolean' || isCluster(value as NodeRedis);
}

export function isCluster(client: NodeRedis): client is NodeRedisCluster {
  return 'nodeClient' in client && Array.isArray(client.masters) && Array.isArray(client.slots);
}

export function isSentinel(client: NodeRedis): client is NodeRedisSentinel {
  return 'getMasterNode' in client && typeof client.getMasterNode === 'function';
}
