import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from './free-port.js';
import { answers } from './probe.js';
import { RedisServer } from './redis-server.js';
import { requireServerBinary } from './server-binary.js';
import { ServerProcess } from './server-process.js';

const SENTINELS = 3;
const MASTER_NAME = 'ceiling';
/** A replica gets its data at once, from whoever is the master: not after the five seconds that Redis waits for more of them. */
const PROMPT = ['--repl-diskless-sync-delay', '0'];

export interface RedisSentinelsOptions {
  /** More command line arguments of all three servers. */
  readonly args?: readonly string[];
  /** Where sentinels and replicas find the master, and clients after them, e.g. a proxy's port. Default: its own. */
  readonly seenAt?: (master: RedisServer) => Promise<number>;
}

/** A master, two replicas and three sentinels that watch them, on 127.0.0.1. */
export class RedisSentinels {
  readonly name = MASTER_NAME;
  readonly ports: readonly number[];
  readonly master: RedisServer;
  readonly #processes: readonly ServerProcess[];
  readonly #replicas: readonly RedisServer[];

  static async start({ args = [], seenAt }: RedisSentinelsOptions = {}): Promise<RedisSentinels> {
    const master = await RedisServer.start({ args: [...PROMPT, ...args] });
    const masterPort = (await seenAt?.(master)) ?? master.port;
    const following = [...PROMPT, ...args, '--replicaof', '127.0.0.1', String(masterPort)];
    const replicas = await Promise.all([0, 1].map(() => RedisServer.start({ args: following })));
    const sentinels = await Promise.all(Array.from({ length: SENTINELS }, () => startSentinel(masterPort)));
    return new RedisSentinels(master, replicas, sentinels);
  }

  private constructor(
    master: RedisServer,
    replicas: readonly RedisServer[],
    sentinels: readonly { port: number; process: ServerProcess }[],
  ) {
    this.master = master;
    this.#replicas = replicas;
    this.ports = sentinels.map(({ port }) => port);
    this.#processes = sentinels.map(({ process }) => process);
  }

  /** Ports of the replicas, one of which becomes the master. */
  get replicaPorts(): readonly number[] {
    return this.#replicas.map(({ port }) => port);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.dispose()));
    await Promise.all([this.master, ...this.#replicas].map((server) => server.stop()));
  }
}

async function startSentinel(masterPort: number): Promise<{ port: number; process: ServerProcess }> {
  const port = await freePort();
  const process = await ServerProcess.create('sentinel');
  // It rewrites its file, so each needs one of its own.
  const file = join(process.directory, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${process.directory}`,
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} 2`,
    `sentinel down-after-milliseconds ${MASTER_NAME} 1000`,
    `sentinel failover-timeout ${MASTER_NAME} 3000`,
    `sentinel parallel-syncs ${MASTER_NAME} 2`,
  ];
  await writeFile(file, `${lines.join('\n')}\n`);
  await process.launch({
    binary: requireServerBinary('redis-server'),
    args: [file, '--sentinel'],
    isReady: () => answers(port, 'PING\r\n', '+PONG'),
  });
  return { port, process };
}
