import type { PolicyDocument } from '../../../src/index.js';
import type { RedisServer } from '../../support/redis-server.js';
import type { Fleet } from '../fleet.js';
import type { Scenario } from '../scenario.js';
import { LEASE_END_MS, never, type Outcome, POLICY, type Stage, unregistered } from '../stage.js';

/** A fault to publish in: what breaks, what mends it, and what the store's loss may cost on top. */
interface Fault {
  readonly during: string;
  readonly inTests?: boolean;
  readonly losesData?: boolean;
  breakIt(fleet: Fleet, redis: RedisServer, stage: Stage): Promise<unknown>;
  mend(fleet: Fleet, redis: RedisServer): Promise<unknown>;
}

const FAULTS: readonly Fault[] = [
  {
    during: 'Redis is killed, and restarted from its AOF',
    breakIt: (_fleet, redis) => redis.kill(),
    mend: (_fleet, redis) => redis.restart(),
  },
  {
    during: 'Redis is killed, and restarted empty',
    losesData: true,
    breakIt: (_fleet, redis) => redis.kill(),
    mend: (_fleet, redis) => redis.restart({ keepData: false }),
  },
  {
    during: 'Redis is stopped (SIGSTOP)',
    inTests: true,
    breakIt: (_fleet, redis) => redis.pause(),
    mend: async (_fleet, redis) => redis.resume(),
  },
  {
    during: 'two of five instances are stopped (SIGSTOP)',
    breakIt: async (fleet) => {
      for (const instance of fleet.instances.slice(3)) instance.pause();
    },
    mend: async (fleet) => {
      for (const instance of fleet.instances.slice(3)) instance.resume();
    },
  },
  {
    during: 'two of five instances are cut off from Redis',
    breakIt: (fleet) =>
      Promise.all(
        fleet.links.slice(3).map(async (link) => {
          link.hold();
          await link.hangConnections();
        }),
      ),
    mend: (fleet) => Promise.all(fleet.links.slice(3).map((link) => link.heal())),
  },
  {
    during: 'replies are lost',
    breakIt: async (fleet, _redis, stage) => {
      for (let i = 0; i < 3; i++) {
        await fleet.onLinks((link) => link.hold('toClient'));
        await stage.last(120);
        await fleet.onLinks((link) => link.cut());
        await fleet.onLinks((link) => link.heal());
      }
    },
    mend: async () => {},
  },
];

const TIGHTER = { rate: (POLICY.ceiling?.rate ?? 0) / 2, burst: (POLICY.ceiling?.burst ?? 0) / 2 };

/**
 * A tighter policy published in the middle of a fault. Old terms hold in every window; new ones in those that begin once
 * what was lent under the old ones has ended.
 */
export const tighteningScenarios: readonly Scenario[] = FAULTS.map((fault) => ({
  name: `A tighter policy published while ${fault.during}`,
  bound: fault.losesData
    ? 'as without the fault, and in windows across the loss min(B, R·lease)'
    : '0 under the old terms in every window, under the new ones from a lease after all know them',
  inTests: fault.inTests ?? false,
  play: (stage) => tightenDuring(stage, fault),
}));

async function tightenDuring(stage: Stage, { breakIt, mend, losesData }: Fault): Promise<Outcome> {
  const nats = await stage.nats();
  const { fleet, redis } = await stage.fleetOnRedis({ natsPort: nats.port }, { appendonly: true });
  await breakIt(fleet, redis, stage);
  await stage.last(300, 1_000);
  const tighter: PolicyDocument = { ...POLICY, ceiling: TIGHTER };
  const version = (await fleet.instances[0]?.publish(tighter)) ?? 0;
  await stage.last(300, 1_000);
  await mend(fleet, redis);
  const healedAt = stage.now();
  await fleet.each((report) => report.policyChanges.at(-1)?.version === version, 'all know the new policy');
  const knownAt = stage.now();
  return stage.conclude(fleet, {
    rules: [
      never(fleet, losesData ? unregistered(fleet) : 0),
      {
        what: 'begun a lease after all knew the new terms',
        ratePerSecond: TIGHTER.rate,
        burst: TIGHTER.burst,
        beginsFrom: knownAt + LEASE_END_MS,
      },
    ],
    healedAt,
    rate: TIGHTER.rate,
  });
}
