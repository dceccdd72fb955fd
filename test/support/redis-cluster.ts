import { Redis } from 'ioredis';
import { eventually } from './eventually.js';
import { RedisServer } from './redis-server.js';

const MASTERS = 3;
const SLOTS = 16_384;

/** One node of a cluster, with a connection to give it orders. */
export interface ClusterNode {
  readonly server: RedisServer;
  readonly client: Redis;
  readonly id: string;
}

/** Three masters and a replica of each, on 127.0.0.1. Made without redis-cli, which is a package of its own. */
export class RedisCluster {
  /** The node with the same index in `replicas` follows it. */
  readonly masters: readonly ClusterNode[];
  readonly replicas: readonly ClusterNode[];

  static async start(): Promise<RedisCluster> {
    const nodes = await Promise.all(Array.from({ length: 2 * MASTERS }, startNode));
    const cluster = new RedisCluster(nodes.slice(0, MASTERS), nodes.slice(MASTERS));
    await cluster.#form(nodes);
    return cluster;
  }

  private constructor(masters: readonly ClusterNode[], replicas: readonly ClusterNode[]) {
    this.masters = masters;
    this.replicas = replicas;
  }

  get ports(): readonly number[] {
    return [...this.masters, ...this.replicas].map(({ server }) => server.port);
  }

  /** Index of the master that slot was given to when the cluster was made. */
  ownerOf(slot: number): number {
    return Math.min(MASTERS - 1, Math.floor(slot / Math.ceil(SLOTS / MASTERS)));
  }

  async stop(): Promise<void> {
    for (const { client } of [...this.masters, ...this.replicas]) client.disconnect();
    await Promise.all([...this.masters, ...this.replicas].map(({ server }) => server.stop()));
  }

  async #form(nodes: readonly ClusterNode[]): Promise<void> {
    const width = Math.ceil(SLOTS / MASTERS);
    await Promise.all(
      this.masters.map(async ({ client }, index) => {
        const last = Math.min(SLOTS, (index + 1) * width) - 1;
        await client.call('CLUSTER', 'ADDSLOTSRANGE', String(index * width), String(last));
      }),
    );
    await Promise.all(nodes.map(({ client }, index) => client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))));
    const [first, ...others] = nodes as [ClusterNode, ...ClusterNode[]];
    for (const { server } of others) await first.client.call('CLUSTER', 'MEET', '127.0.0.1', String(server.port));
    await everyNode(nodes, (info) => info.includes(`cluster_known_nodes:${nodes.length}`), 'all nodes know each other');
    for (const [index, replica] of this.replicas.entries()) {
      const master = this.masters[index] as ClusterNode;
      await eventually(() => replica.client.call('CLUSTER', 'REPLICATE', master.id), 'a replica knows its master');
    }
    await everyNode(nodes, (info) => info.includes('cluster_state:ok'), 'the cluster is complete');
    for (const { client } of this.replicas) {
      await eventually(
        async () => (await client.info('replication')).includes('master_link_status:up'),
        'the replicas follow',
        { deadlineMs: 10_000 },
      );
    }
  }
}

async function startNode(): Promise<ClusterNode> {
  const server = await RedisServer.start({
    args: [
      ...['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf', '--cluster-node-timeout', '1000'],
      ...['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'],
    ],
  });
  const client = new Redis({ port: server.port, host: '127.0.0.1', maxRetriesPerRequest: 0 });
  client.on('error', () => {});
  await eventually(() => client.status === 'ready', 'the node answers');
  return { server, client, id: (await client.call('CLUSTER', 'MYID')) as string };
}

async function everyNode(
  nodes: readonly ClusterNode[],
  condition: (info: string) => boolean,
  message: string,
): Promise<void> {
  for (const { client } of nodes) {
    await eventually(async () => condition((await client.call('CLUSTER', 'INFO')) as string), message, {
      deadlineMs: 15_000,
    });
  }
}
