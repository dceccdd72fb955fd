import { Cluster } from 'ioredis';
import { partitionOf } from '../../../src/ceiling/ceiling-store.js';
import type { RedisClient } from '../../../src/index.js';
import { eventually } from '../../support/eventually.js';
import { type ClusterNode, RedisCluster } from '../../support/redis-cluster.js';
import type { Fleet } from '../fleet.js';
import type { Scenario } from '../scenario.js';
import { afterStoreLoss, never, POLICY, type Stage } from '../stage.js';
import { FAILOVER_MS, STALE } from './failover.js';

/** A Redis Cluster changes under the fleet. */
export const clusterScenarios: readonly Scenario[] = [
  {
    name: 'Cluster: a master killed (SIGKILL)',
    bound: STALE,
    async play(stage: Stage) {
      const { cluster, fleet } = await clusterFleet(stage);
      const lostAt = stage.now();
      await (cluster.masters[0] as ClusterNode).server.kill();
      const heir = (cluster.replicas[0] as ClusterNode).client;
      await eventually(async () => (await heir.info('replication')).includes('role:master'), 'the replica took over', {
        deadlineMs: 15_000,
      });
      return stage.conclude(fleet, {
        rules: [
          ...afterStoreLoss(fleet, lostAt).map((rule) => ({ ...rule, key: 0 })),
          // The other masters, and who asks for their keys, go on.
          ...[1, 2].map((key) => ({ ...never(fleet), key })),
        ],
        healedAt: stage.now(),
        backWithinMs: FAILOVER_MS,
      });
    },
  },
  {
    name: 'Cluster: a slot moved to another master, key by key',
    bound: '0',
    async play(stage: Stage) {
      const { cluster, fleet, slots } = await clusterFleet(stage);
      const movedAt = stage.now();
      await moveSlot(cluster, slots[0] as number, () => stage.last(300));
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: movedAt });
    },
  },
];

/** A fleet on a cluster, with one busy key at each master; `slots[i]` is the slot of key `i`, at master `i`. */
async function clusterFleet(stage: Stage): Promise<{ cluster: RedisCluster; fleet: Fleet; slots: number[] }> {
  const cluster = await RedisCluster.start();
  stage.after(() => cluster.stop());
  const client = new Cluster(
    cluster.ports.map((port) => ({ host: '127.0.0.1', port })),
    { redisOptions: { maxRetriesPerRequest: 0 } },
  );
  client.on('error', () => {});
  stage.after(async () => client.disconnect());
  await eventually(() => client.status === 'ready', 'the cluster’s client is ready');
  const { keys, slots } = await oneKeyEach(cluster);
  const fleet = await stage.fleet(
    {
      redis: { kind: 'cluster', ports: cluster.ports },
      keys,
      policy: { ...POLICY, ceiling: { rate: 200, burst: 200 } },
    },
    client as RedisClient,
  );
  return { cluster, fleet, slots };
}

/** A key for each master, by the slot that its partition's hash tag falls into. */
async function oneKeyEach(cluster: RedisCluster): Promise<{ keys: string[]; slots: number[] }> {
  const { client } = cluster.masters[0] as ClusterNode;
  const keys: string[] = [];
  const slots: number[] = [];
  for (let i = 0; keys.filter(Boolean).length < cluster.masters.length; i++) {
    const key = `key-${i}`;
    const slot = Number(await client.call('CLUSTER', 'KEYSLOT', `{hg:${partitionOf(POLICY.name, key)}}`));
    const owner = cluster.ownerOf(slot);
    keys[owner] ??= key;
    slots[owner] ??= slot;
  }
  return { keys, slots };
}

/** Moves a slot from the first master to the second, as `redis-cli --cluster reshard` does, pausing between two keys. */
async function moveSlot(cluster: RedisCluster, slot: number, pause: () => Promise<void>): Promise<void> {
  const [from, to] = cluster.masters as [ClusterNode, ClusterNode];
  const number = String(slot);
  await to.client.call('CLUSTER', 'SETSLOT', number, 'IMPORTING', from.id);
  await from.client.call('CLUSTER', 'SETSLOT', number, 'MIGRATING', to.id);
  for (;;) {
    const keys = (await from.client.call('CLUSTER', 'GETKEYSINSLOT', number, '1')) as string[];
    if (keys.length === 0) break;
    await from.client.call('MIGRATE', '127.0.0.1', String(to.server.port), '', '0', '1000', 'KEYS', ...keys);
    await pause();
  }
  for (const { client } of [to, from, ...cluster.masters.slice(2)]) {
    await client.call('CLUSTER', 'SETSLOT', number, 'NODE', to.id);
  }
}
