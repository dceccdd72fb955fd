import { eventually } from '../../support/eventually.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import type { Scenario } from '../scenario.js';
import { LEASE_END_MS, never, type Outcome, type Stage, unregistered } from '../stage.js';
import { withRedis } from './redis-data.js';

const SPLIT_MS = 3_000;
/** `min-replicas-max-lag`, and the second after which Redis looks at it next. */
const LAG_MS = 2_000;

/** A failover that two of five instances have not heard of: the old master goes on answering them. */
export const splitBrainScenarios: readonly Scenario[] = [
  {
    name: 'Zombie master: after a failover it goes on serving two of five instances',
    bound: 'R × the time that both serve, + min(B, R·lease); 0 in windows begun a lease after it',
    play: (stage) => split(stage, []),
  },
  {
    name: 'Zombie master with min-replicas-to-write 1',
    bound: 'R × min-replicas-max-lag + 1 s, + min(B, R·lease); 0 in windows begun a lease after it',
    inTests: true,
    play: (stage) => split(stage, ['--min-replicas-to-write', '1', '--min-replicas-max-lag', '1'], LAG_MS),
  },
];

/** `servesForMs`: how long the old master may go on granting by itself; default: as long as the split lasts. */
async function split(stage: Stage, args: readonly string[], servesForMs?: number): Promise<Outcome> {
  const old = await stage.redis({ args: ['--repl-diskless-sync-delay', '0', ...args] });
  const replication = await TcpProxy.start({ targetPort: old.port });
  stage.after(() => replication.stop());
  const heir = await stage.redis({ args: ['--replicaof', '127.0.0.1', String(replication.port)] });
  await withRedis(old.port, (client) =>
    eventually(async () => (await client.info('replication')).includes('state=online'), 'the replica follows', {
      deadlineMs: 10_000,
    }),
  );
  const fleet = await stage.fleet({ redis: { kind: 'server', port: old.port } });

  const splitAt = stage.now();
  replication.hold();
  await withRedis(heir.port, (client) => client.replicaof('NO', 'ONE'));
  for (const link of fleet.links.slice(2)) {
    link.retarget(heir.port);
    link.cut();
  }
  await stage.last(SPLIT_MS, 5_000);
  await withRedis(old.port, (client) => client.replicaof('127.0.0.1', heir.port));
  for (const link of fleet.links.slice(0, 2)) {
    link.retarget(heir.port);
    link.cut();
  }
  const healedAt = stage.now();

  const bothMs = Math.min(servesForMs ?? Number.POSITIVE_INFINITY, healedAt - splitAt);
  const twice = (fleet.rate * bothMs) / 1_000 + unregistered(fleet);
  return stage.conclude(fleet, {
    rules: [
      { ...never(fleet), what: 'ended before the split', endsBefore: splitAt },
      never(fleet, twice),
      { ...never(fleet), what: 'begun a lease after it', beginsFrom: healedAt + LEASE_END_MS },
    ],
    healedAt,
  });
}
