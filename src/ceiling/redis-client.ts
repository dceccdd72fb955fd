/** What a script is given: text, or bytes as they are. */
export type ScriptArgument = string | Buffer;

/**
 * What the ceiling needs of a Redis client, as ioredis 5 and 6 (`Redis` and `Cluster`) and iovalkey have it. Asked for
 * by shape and never by class, so that whatever copy of a library made the client does not matter.
 */
export interface RedisClient {
  /** `'ready'` while commands can be sent. */
  readonly status: string;
  /** True for a client that sends each command to the node that owns its keys. */
  readonly isCluster?: boolean;
  evalsha(sha1: string, keyCount: number, ...keysAndArguments: ScriptArgument[]): Promise<unknown>;
  eval(script: string, keyCount: number, ...keysAndArguments: ScriptArgument[]): Promise<unknown>;
  /** Sends `evalsha` or `eval` likewise; strings of the reply come as the bytes they are. */
  callBuffer(command: string, args: ScriptArgument[]): Promise<unknown>;
  info(section: string): Promise<string>;
  /** `'end'`: it will not connect again of itself. */
  on(event: 'ready' | 'close' | 'end', listener: () => void): unknown;
  removeListener(event: 'ready' | 'close' | 'end', listener: () => void): unknown;
}

/** What a Cluster client has besides. */
export interface RedisClusterClient extends RedisClient {
  nodes(role: 'master'): Pick<RedisClient, 'info'>[];
}

const METHODS = ['evalsha', 'eval', 'callBuffer', 'info', 'on', 'removeListener'] as const;

/** The shape in words, for messages. */
export const CLIENT_SHAPE = `status, ${METHODS.join(', ')}`;

/** Whether `value` has the shape of a {@link RedisClient}. */
export function isRedisClient(value: unknown): value is RedisClient {
  if (typeof value !== 'object' || value === null) return false;
  const client = value as Record<string, unknown>;
  return typeof client['status'] === 'string' && METHODS.every((name) => typeof client[name] === 'function');
}

/** The servers behind a client: each master of a cluster, or the one. */
export function serversOf(client: RedisClient): Pick<RedisClient, 'info'>[] {
  return client.isCluster && 'nodes' in client ? (client as RedisClusterClient).nodes('master') : [client];
}
