import { EventEmitter } from 'node:events';
import type { Milliseconds } from '../units.js';
import {
  isCluster,
  isSentinel,
  type NodeRedis,
  type NodeRedisCluster,
  type NodeRedisCommandOptions,
  type NodeRedisMaster,
} from './node-redis.js';
import type { RedisClient, RedisClusterClient, ScriptArgument } from './redis-client.js';

/** A call that could not be written for so long is taken back: its caller has given it up, and later it may do harm. */
const WRITE_WITHIN_MS: Milliseconds = 100;

/** By which one kind of client or another tells that commands can be sent, that a connection was lost, that all are. */
const READY_EVENTS = ['ready', 'connect', 'node-ready'];
const LOST_EVENTS = ['reconnecting', 'node-reconnecting', 'topology-change', 'disconnect', 'end', 'error'];

/**
 * A client of node-redis, standalone, Sentinel or Cluster, as a {@link RedisClient}.
 *
 * node-redis queues what it can't send and sends it on the next connection; its Sentinel client also sends again what was
 * under way when the connection broke. So every command goes out with a signal that takes it back: when a connection is
 * lost, and in any case after a tenth of a second. What was written once is left alone: it may have run.
 */
export class NodeRedisClient extends EventEmitter<{ ready: []; close: []; end: [] }> implements RedisClient {
  readonly isCluster: boolean;
  readonly #client: NodeRedis;
  readonly #unwritten = new Set<AbortController>();
  readonly #onReady = (): void => {
    this.emit('ready');
  };
  /** Also of `error`, which would end the process if nobody listened; what failed shows in the calls. */
  readonly #onLost = (): void => {
    for (const controller of this.#unwritten) controller.abort();
    this.#unwritten.clear();
    this.emit('close');
    if (!this.#client.isOpen) this.emit('end');
  };

  constructor(client: NodeRedis) {
    super();
    this.#client = client;
    this.isCluster = isCluster(client);
    for (const event of READY_EVENTS) client.on(event, this.#onReady);
    for (const event of LOST_EVENTS) client.on(event, this.#onLost);
  }

  get status(): string {
    const client = this.#client;
    if (!client.isOpen) return 'not open: was its connect() called?';
    return hasConnection(client) ? 'ready' : 'connecting';
  }

  evalsha(sha1: string, keyCount: number, ...keysAndArguments: ScriptArgument[]): Promise<unknown> {
    return this.#send(String(keysAndArguments[0]), ['EVALSHA', sha1, String(keyCount), ...keysAndArguments]);
  }

  eval(script: string, keyCount: number, ...keysAndArguments: ScriptArgument[]): Promise<unknown> {
    return this.#send(String(keysAndArguments[0]), ['EVAL', script, String(keyCount), ...keysAndArguments]);
  }

  info(section: string): Promise<string> {
    return this.#send('', ['INFO', section]) as Promise<string>;
  }

  /** Each master of a cluster. */
  nodes(): ReturnType<RedisClusterClient['nodes']> {
    const cluster = this.#client as NodeRedisCluster;
    return cluster.masters.map((master) => ({ info: (section) => this.#infoOf(cluster, master, section) }));
  }

  /** Whoever used to listen has left: so does this, and the client is its owner's again, as it was. */
  override removeListener(event: 'ready' | 'close' | 'end', listener: () => void): this {
    super.removeListener(event, listener);
    if (this.eventNames().length === 0) this.#release();
    return this;
  }

  #release(): void {
    for (const event of READY_EVENTS) this.#client.off(event, this.#onReady);
    for (const event of LOST_EVENTS) this.#client.off(event, this.#onLost);
  }

  async #infoOf(cluster: NodeRedisCluster, master: NodeRedisMaster, section: string): Promise<string> {
    const node = await cluster.nodeClient(master);
    return (await this.#withdrawable((options) => node.sendCommand(['INFO', section], options))) as string;
  }

  #send(firstKey: string, args: readonly ScriptArgument[]): Promise<unknown> {
    const client = this.#client;
    return this.#withdrawable((options) => {
      if (isCluster(client)) return client.sendCommand(firstKey, false, args, options);
      if (isSentinel(client)) return client.sendCommand(false, args, options);
      return client.sendCommand(args, options);
    });
  }

  async #withdrawable(send: (options: NodeRedisCommandOptions) => Promise<unknown>): Promise<unknown> {
    const controller = new AbortController();
    this.#unwritten.add(controller);
    const late = setTimeout(() => {
      this.#unwritten.delete(controller);
      controller.abort();
    }, WRITE_WITHIN_MS);
    late.unref();
    try {
      return await send({ abortSignal: controller.signal, typeMapping: {} });
    } finally {
      clearTimeout(late);
      this.#unwritten.delete(controller);
    }
  }
}

function hasConnection(client: NodeRedis): boolean {
  // A cluster says no more than that it has been opened; a master without a client is connected to when it is needed.
  if (isCluster(client)) return client.masters.some((master) => master.client?.isReady !== false);
  // Sentinel's own `isReady` stays true while the master is away.
  return client.isReady && (!isSentinel(client) || client.getMasterNode() !== undefined);
}
