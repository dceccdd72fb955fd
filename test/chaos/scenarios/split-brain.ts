import type { Milliseconds } from '../../../src/index.js';
import { eventually } from '../../support/eventually.js';
import { RedisSentinels } from '../../support/redis-sentinel.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import type { Fleet } from '../fleet.js';
import type { Scenario } from '../scenario.js';
import { LEASE_END_MS, never, type Outcome, type Stage, unregistered } from '../stage.js';
import { followers, promoted } from './failover.js';
import { withRedis } from './redis-data.js';

const SPLIT_MS = 3_000;
const STRICT = ['--min-replicas-to-write', '1', '--min-replicas-max-lag', '1'];
/** `min-replicas-max-lag`, and the second after which Redis looks at it next. */
const LAG_MS = 2_000;
/** How many of the five instances stay with the old master. */
const BEHIND = 2;
const BOUND = 'R × the time that both serve, + min(B, R·lease); 0 in windows begun a lease after it';
const STRICT_BOUND = 'R × min-replicas-max-lag + 1 s, + min(B, R·lease); 0 in windows begun a lease after it';

/** A failover that two of five instances have not heard of: the old master goes on answering them. */
export const splitBrainScenarios: readonly Scenario[] = [
  {
    name: 'Sentinel: master and two of five instances cut off from the sentinels; it goes on serving them (zombie)',
    bound: BOUND,
    play: (stage) => sentinelSplit(stage, []),
  },
  {
    name: 'The same with min-replicas-to-write 1',
    bound: STRICT_BOUND,
    play: (stage) => sentinelSplit(stage, STRICT, LAG_MS),
  },
  {
    name: 'Zombie master with min-replicas-to-write 1, another one promoted by hand',
    bound: STRICT_BOUND,
    inTests: true,
    play: (stage) => split(stage, STRICT, LAG_MS),
  },
];

/** The old master grants by itself until the network is mended, or for `servesForMs`, its own replicas being out of reach. */
async function sentinelSplit(stage: Stage, args: readonly string[], servesForMs?: number): Promise<Outcome> {
  const proxies: TcpProxy[] = [];
  const proxyTo = async (targetPort: number): Promise<number> => {
    const proxy = await TcpProxy.start({ targetPort });
    stage.after(() => proxy.stop());
    proxies.push(proxy);
    return proxy.port;
  };
  const sentinels = await RedisSentinels.start({ args, seenAt: ({ port }) => proxyTo(port) });
  stage.after(() => sentinels.stop());
  const { master, name, ports } = sentinels;
  const seenAt = proxies[0]?.port ?? 0;
  const ways = await Promise.all(ports.map(proxyTo));
  await followers(master.port, 2);
  const fleet = await stage.fleet(
    {
      redis: { kind: 'sentinel', ports, name },
      redisOf: (index) =>
        index < BEHIND
          ? { kind: 'sentinel', ports: ways, name, translated: { [seenAt]: master.port } }
          : { kind: 'sentinel', ports, name },
    },
    master.url,
  );

  const splitAt = stage.now();
  await Promise.all(proxies.map((proxy) => hang(proxy)));
  await promoted(sentinels);
  await stage.last(SPLIT_MS, 5_000);
  await Promise.all(proxies.map((proxy) => proxy.heal()));
  await withRedis(master.port, (client) =>
    eventually(async () => !/cmd=eval/.test(String(await client.client('LIST'))), 'all have left the old master', {
      deadlineMs: 20_000,
    }),
  );
  return concludeSplit(stage, fleet, { splitAt, healedAt: stage.now(), servesForMs });
}

/** The same without sentinels, and without the seconds that they take. */
async function split(stage: Stage, args: readonly string[], servesForMs: number): Promise<Outcome> {
  const old = await stage.redis({ args: ['--repl-diskless-sync-delay', '0', ...args] });
  const replication = await TcpProxy.start({ targetPort: old.port });
  stage.after(() => replication.stop());
  const heir = await stage.redis({ args: ['--replicaof', '127.0.0.1', String(replication.port)] });
  await followers(old.port, 1);
  const fleet = await stage.fleet({ redis: { kind: 'server', port: old.port } });

  const splitAt = stage.now();
  replication.hold();
  await withRedis(heir.port, (client) => client.replicaof('NO', 'ONE'));
  for (const link of fleet.links.slice(BEHIND)) {
    link.retarget(heir.port);
    link.cut();
  }
  await stage.last(SPLIT_MS, 5_000);
  await withRedis(old.port, (client) => client.replicaof('127.0.0.1', heir.port));
  for (const link of fleet.links.slice(0, BEHIND)) {
    link.retarget(heir.port);
    link.cut();
  }
  return concludeSplit(stage, fleet, { splitAt, healedAt: stage.now(), servesForMs });
}

interface Split {
  readonly splitAt: Milliseconds;
  /** When nobody asked the old master any more. */
  readonly healedAt: Milliseconds;
  readonly servesForMs: Milliseconds | undefined;
}

async function concludeSplit(
  stage: Stage,
  fleet: Fleet,
  { splitAt, healedAt, servesForMs = Number.POSITIVE_INFINITY }: Split,
): Promise<Outcome> {
  const bothMs = Math.min(servesForMs, healedAt - splitAt);
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

async function hang(proxy: TcpProxy): Promise<void> {
  proxy.hold();
  await proxy.hangConnections();
}
