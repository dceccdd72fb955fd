import { EventEmitter } from 'node:events';
import type { Milliseconds } from '../units.js';
import { clusterSlot } from './cluster-slot.js';
import {
  isCluster,
  isSentinel,
  type NodeRedis,
  type NodeRedisCluster,
  type NodeRedisCommandOptions,
  type NodeRedisMaster,
} from './node-redis.js';
import type { RedisClient, RedisClusterClient, ScriptArgument } from './redis-client.js';

/** Older than this, a call is not sent any more: its caller has given it up. */
const SEND_WITHIN_MS: Milliseconds = 100;

/** By which one kind of client or another tells that commands can be sent, that a connection was lost, that all are. */
const READY_EVENTS = ['ready', 'connect', 'node-ready'];
const LOST_EVENTS = ['reconnecting', 'node-reconnecting', 'topology-change', 'disconnect', 'end', 'error'];

/** Strings of a reply as they are, by the byte that they begin with on the wire. */
const BYTES = { [36]: Buffer };

/**
 * A client of node-redis, standalone, Sentinel or Cluster, as a {@link RedisClient}.
 *
 * node-redis queues what it can't send, so it is given nothing while the connection that a command needs is away. And its
 * Sentinel client sends again what was under way when a connection broke, a Cluster client what was redirected: so each
 * command has a signal by which it is not sent once it is late, or the connections are others than when it was made.
 */
export class NodeRedisClient extends EventEmitter<{ ready: []; close: []; end: [] }> implements RedisClient {
  readonly isCluster: boolean;
  readonly #client: NodeRedis;
  /** Counts the connections lost or replaced. */
  #epoch = 0;
  readonly #onReady = (): void => {
    this.emit('ready');
  };
  /** Also of `error`, which would end the process if nobody listened; what failed shows in the calls. */
  readonly #onLost = (): void => {
    this.#epoch += 1;
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

  callBuffer(command: string, args: ScriptArgument[]): Promise<unknown> {
    return this.#send(String(args[2]), [command.toUpperCase(), ...args], BYTES);
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
    return (await node.sendCommand(['INFO', section], this.#sendOptions())) as string;
  }

  async #send(firstKey: string, args: readonly ScriptArgument[], typeMapping = {}): Promise<unknown> {
    const client = this.#client;
    if (!hasConnection(client, firstKey)) throw new Error('Not sent: the Redis client has no connection for it.');
    const options = this.#sendOptions(typeMapping);
    if (isCluster(client)) return client.sendCommand(firstKey, false, args, options);
    if (isSentinel(client)) return client.sendCommand(false, args, options);
    return client.sendCommand(args, options);
  }

  #sendOptions(typeMapping = {}): NodeRedisCommandOptions {
    const epoch = this.#epoch;
    const lateAt = performance.now() + SEND_WITHIN_MS;
    // Looked at whenever the command is about to be sent, and no more. To take it out of the queue, as a true signal or a
    // timeout does, may break the queue for good before 6.2, and with it the application's own commands.
    const signal = {
      get aborted() {
        return isPast();
      },
      addEventListener() {},
      removeEventListener() {},
    };
    const isPast = (): boolean => this.#epoch !== epoch || performance.now() > lateAt;
    const options = { abortSignal: signal as unknown as AbortSignal, timeout: undefined, typeMapping };
    return options;
  }
}

function hasConnection(client: NodeRedis, key = ''): boolean {
  // A cluster says no more than that it has been opened; a master without a client is connected to when it is needed.
  if (isCluster(client)) {
    const owner = key === '' ? undefined : client.slots[clusterSlot(key)]?.master;
    const masters = owner ? [owner] : client.masters;
    return masters.some((master) => master.client?.isReady !== false);
  }
  // Sentinel's own `isReady` stays true while the master is away.
  return client.isReady && (!isSentinel(client) || client.getMasterNode() !== undefined);
}
