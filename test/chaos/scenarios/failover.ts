import { eventually } from '../../support/eventually.js';
import { RedisSentinels } from '../../support/redis-sentinel.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import type { Scenario } from '../scenario.js';
import { afterStoreLoss, type Stage } from '../stage.js';
import { withRedis } from './redis-data.js';

export const STALE = '0; in windows begun within a lease of the loss: what was in wallets, ≤ min(B, R·lease)';
/** A failover by Sentinel or Cluster takes this long here: a second to notice, one to agree. */
export const FAILOVER_MS = 15_000;

/** Another server takes over, with data that may be behind. */
export const failoverScenarios: readonly Scenario[] = [
  {
    name: 'A replica promoted that is a second behind',
    bound: STALE,
    inTests: true,
    async play(stage: Stage) {
      const master = await stage.redis({ args: ['--repl-diskless-sync-delay', '0'] });
      const replication = await TcpProxy.start({ targetPort: master.port });
      stage.after(() => replication.stop());
      const replica = await stage.redis({ args: ['--replicaof', '127.0.0.1', String(replication.port)] });
      await withRedis(replica.port, (client) =>
        eventually(
          async () => (await client.info('replication')).includes('master_link_status:up'),
          'the replica follows',
        ),
      );
      const fleet = await stage.fleet({ redis: { kind: 'server', port: master.port } });
      replication.hold();
      await stage.last(1_000);
      const lostAt = stage.now();
      await master.kill();
      await withRedis(replica.port, (client) => client.replicaof('NO', 'ONE'));
      await fleet.onLinks((link) => {
        link.retarget(replica.port);
        link.cut();
      });
      return stage.conclude(fleet, { rules: afterStoreLoss(fleet, lostAt), healedAt: stage.now() });
    },
  },
  {
    name: 'Sentinel: master killed (SIGKILL)',
    bound: STALE,
    play: (stage) => sentinelFailover(stage, (sentinels) => sentinels.master.kill()),
  },
  {
    name: 'Sentinel: master stopped (SIGSTOP)',
    bound: STALE,
    play: (stage) => sentinelFailover(stage, (sentinels) => sentinels.master.pause()),
  },
];

async function sentinelFailover(stage: Stage, breakMaster: (sentinels: RedisSentinels) => Promise<void>) {
  const sentinels = await RedisSentinels.start();
  stage.after(() => sentinels.stop());
  await followers(sentinels.master.port, 2);
  const fleet = await stage.fleet(
    { redis: { kind: 'sentinel', ports: sentinels.ports, name: sentinels.name } },
    `redis://127.0.0.1:${sentinels.master.port}`,
  );
  const lostAt = stage.now();
  await breakMaster(sentinels);
  await promoted(sentinels);
  return stage.conclude(fleet, {
    rules: afterStoreLoss(fleet, lostAt),
    healedAt: stage.now(),
    backWithinMs: FAILOVER_MS,
  });
}

/** Waits until so many replicas have all that the master at `port` has. */
export async function followers(port: number, count: number): Promise<void> {
  await withRedis(port, (client) =>
    eventually(
      async () => (await client.info('replication')).match(/state=online/g)?.length === count,
      'all replicas follow',
      { deadlineMs: 10_000 },
    ),
  );
}

/** Waits until the sentinels have made a replica the master. */
export async function promoted(sentinels: RedisSentinels): Promise<void> {
  await eventually(
    async () => {
      const roles = await Promise.all(
        sentinels.replicaPorts.map((port) => withRedis(port, (client) => client.info('replication'))),
      );
      return roles.some((role) => role.includes('role:master'));
    },
    'a replica has been promoted',
    { deadlineMs: 20_000, everyMs: 50 },
  );
}
