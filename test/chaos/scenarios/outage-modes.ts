import type { Milliseconds, PolicyDocument } from '../../../src/index.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import type { Fleet } from '../fleet.js';
import type { InstanceReport } from '../instance/messages.js';
import type { Scenario } from '../scenario.js';
import { LEASE_END_MS, never, POLICY, type Stage, withProblem } from '../stage.js';
import type { WindowRule } from '../window-oracle.js';

const SIZE = 5;
/** How long after the last lease an outage mode may take to be in force: noticing, and a busy machine. */
const SETTLING_MS: Milliseconds = 400;

const withMode = (mode: 'deny' | 'allow' | 'share'): PolicyDocument => ({
  ...POLICY,
  outage: { mode, ...(mode === 'share' && { fleet: SIZE }) },
});

/** What the fleet does while nobody reaches Redis, as the policy says. */
export const outageModeScenarios: readonly Scenario[] = [
  {
    name: 'Outage mode deny: nobody reaches Redis',
    bound: '0; nothing is admitted once leases are over',
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis({ policy: withMode('deny') });
      const { leasesOverAt, healedAt } = await outage(stage, fleet);
      const admitted = admittedBetween(fleet, leasesOverAt, healedAt);
      const outcome = await stage.conclude(fleet, { rules: [never(fleet)], healedAt });
      return admitted === 0 ? outcome : withProblem(outcome, `${admitted} admitted without a lease`);
    },
  },
  {
    name: 'Outage mode allow: nobody reaches Redis',
    bound: '0 before and after; no bound during the outage, by choice',
    inTests: true,
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis({ policy: withMode('allow') });
      const { brokenAt, leasesOverAt, healedAt } = await outage(stage, fleet);
      const admitted = admittedBetween(fleet, leasesOverAt, healedAt);
      await allRejoined(fleet);
      const rejoinedAt = stage.now();
      const atRate = (fleet.rate * (healedAt - leasesOverAt)) / 1_000;
      const outcome = await stage.conclude(fleet, {
        rules: (reports) => {
          // On a busy machine one of them may take a store that is only slow for lost, before and after.
          const spans = reports.flatMap(({ unleased }) => unleased ?? []);
          const from = Math.min(brokenAt, ...spans.map((span) => span.from));
          const until = Math.max(healedAt, ...spans.map((span) => span.until));
          return [
            { ...never(fleet), what: 'ended before the outage', endsBefore: from },
            { ...never(fleet), what: 'begun once all were back', beginsFrom: until },
          ];
        },
        // Whoever is still on his own makes the rate look better than it is.
        healedAt: rejoinedAt,
      });
      if (admitted > atRate) return outcome;
      return withProblem(outcome, `only ${admitted} admitted in the outage, though the policy allows all`);
    },
  },
  {
    name: 'Outage mode share: nobody reaches Redis',
    bound: 'N̂ × one cost; + R/N̂ for who is not back when the first one is',
    inTests: true,
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis({ policy: withMode('share') });
      const { leasesOverAt, healedAt } = await outage(stage, fleet);
      await allRejoined(fleet);
      const used = admittedBetween(fleet, leasesOverAt, healedAt) / ((fleet.rate * (healedAt - leasesOverAt)) / 1_000);
      const outcome = await stage.conclude(fleet, {
        rules: (reports) => whileSharing(fleet, reports),
        healedAt,
      });
      // One token at a time: whoever is kept from a core for longer than it takes to earn one loses the rest.
      return used > 0.2 ? outcome : withProblem(outcome, `the fleet used ${used.toFixed(2)} of its rate by itself`);
    },
  },
  {
    name: 'Outage mode share: one of five instances cut off alone',
    bound: 'R/N̂ while it is cut off, + one cost',
    inTests: true,
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis({ policy: withMode('share') });
      const link = fleet.links[0] as TcpProxy;
      link.hold();
      await link.hangConnections();
      await stage.last(LEASE_END_MS + 800, 6_000);
      await link.heal();
      const healedAt = stage.now();
      const outcome = await stage.conclude(fleet, {
        rules: (reports) => {
          // On a busy machine more than the one may take the store for lost.
          const alone = reports.filter(({ unleased }) => unleased !== undefined).length;
          return [{ ...never(fleet, alone), ratePerSecond: fleet.rate * (1 + alone / SIZE) }];
        },
        healedAt,
      });
      const alone = outcome.reports.reduce((sum, { tokensUnleased }) => sum + tokensUnleased, 0);
      return alone > 0 ? outcome : withProblem(outcome, 'the one that was cut off admitted nothing');
    },
  },
  {
    name: 'Outage mode share: nobody reaches Redis soon after all have started, their number learnt',
    bound: 'N̂ × one cost; + R/N̂ for who is not back when the first one is',
    async play(stage: Stage) {
      const policy: PolicyDocument = { ...POLICY, outage: { mode: 'share' } };
      const { fleet } = await stage.fleetOnRedis({ policy });
      await outage(stage, fleet);
      const healedAt = stage.now();
      await allRejoined(fleet);
      return stage.conclude(fleet, { rules: (reports) => whileSharing(fleet, reports), healedAt });
    },
  },
];

/** Cuts everybody off for longer than any lease, and mends it. */
async function outage(
  stage: Stage,
  fleet: Fleet,
): Promise<{ brokenAt: Milliseconds; leasesOverAt: Milliseconds; healedAt: Milliseconds }> {
  const brokenAt = stage.now();
  await fleet.onLinks(async (link) => {
    link.hold();
    await link.hangConnections();
  });
  const leasesOverAt = stage.now() + LEASE_END_MS + SETTLING_MS;
  await stage.last(LEASE_END_MS + SETTLING_MS + 800, 8_000);
  const healedAt = stage.now();
  await fleet.onLinks((link) => link.heal());
  return { brokenAt, leasesOverAt, healedAt };
}

/** Waits until every instance reaches the store again. */
async function allRejoined(fleet: Fleet): Promise<void> {
  await fleet.each(({ storeChanges }) => storeChanges.at(-1)?.degraded !== true, 'all instances reach Redis');
}

/** One cost each while nobody is back; and when the first is, the others go on with their shares until they notice. */
function whileSharing(fleet: Fleet, reports: readonly InstanceReport[]): WindowRule[] {
  const times = recoveries(reports);
  const first = Math.min(...times);
  const apartMs = times.reduce((sum, at) => sum + at - first, 0);
  return [
    { ...never(fleet, SIZE), what: 'while nobody was back', endsBefore: first },
    { ...never(fleet, SIZE + (apartMs * fleet.rate) / SIZE / 1_000), what: 'any window' },
  ];
}

/** When each instance regained the store for the last time. */
function recoveries(reports: readonly InstanceReport[]): Milliseconds[] {
  return reports.map(({ storeChanges }) => storeChanges.findLast(({ degraded }) => !degraded)?.at ?? 0);
}

function admittedBetween(fleet: Fleet, from: Milliseconds, to: Milliseconds): number {
  return fleet.admissions().filter(({ at }) => at >= from && at < to).length;
}
