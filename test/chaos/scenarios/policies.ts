import type { PolicyDocument } from '../../../src/index.js';
import { eventually } from '../../support/eventually.js';
import type { NatsServer } from '../../support/nats-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import type { Fleet } from '../fleet.js';
import type { Scenario } from '../scenario.js';
import { LEASE_END_MS, never, type Outcome, POLICY, type Stage } from '../stage.js';

/** NATS breaks, or a policy comes at a bad moment. */
export const policyScenarios: readonly Scenario[] = [
  {
    name: 'NATS killed (SIGKILL), restarted with its data',
    bound: '0',
    async play(stage: Stage) {
      return aroundNats(stage, async (nats) => {
        await nats.kill();
        await stage.last(1_500, 5_000);
        await nats.restart();
      });
    },
  },
  {
    name: 'NATS killed (SIGKILL), restarted without its data',
    bound: '0',
    changedInTests: true,
    inTests: true,
    async play(stage: Stage) {
      return aroundNats(stage, async (nats) => {
        await nats.kill();
        await stage.last(1_000, 5_000);
        await nats.restart({ keepData: false });
      });
    },
  },
  {
    name: 'NATS stopped (SIGSTOP), then going on',
    bound: '0',
    async play(stage: Stage) {
      return aroundNats(stage, async (nats) => {
        await nats.pause();
        await stage.last(2_000, 10_000);
        nats.resume();
      });
    },
  },
  {
    name: 'NATS in a black hole',
    bound: '0',
    async play(stage: Stage) {
      return aroundNats(stage, async (_nats, link) => {
        link.hold();
        await link.hangConnections();
        await stage.last(2_000, 10_000);
        await link.heal();
      });
    },
  },
  {
    name: 'NATS comes back without JetStream, then with it',
    bound: '0',
    async play(stage: Stage) {
      const without = await stage.nats({ jetstream: false });
      return aroundNats(stage, async (nats, link) => {
        link.retarget(without.port);
        link.cut();
        await stage.last(2_000, 5_000);
        link.retarget(nats.port);
        link.cut();
      });
    },
  },
  {
    name: 'A tighter policy published while Redis can’t be reached',
    bound: '0 under the old terms before, under the new ones from the first call on',
    changesTerms: true,
    inTests: true,
    async play(stage: Stage) {
      const nats = await stage.nats();
      const { fleet } = await stage.fleetOnRedis({ natsPort: nats.port });
      await fleet.onLinks(async (link) => {
        link.hold();
        await link.hangConnections();
      });
      await stage.last(LEASE_END_MS + 200);
      const tighter = { rate: fleet.rate / 2, burst: fleet.burst / 2 };
      const version = (await fleet.instances[0]?.publish({ ...POLICY, ceiling: tighter })) ?? 0;
      await fleet.each((report) => report.policyChanges.at(-1)?.version === version, 'all know the new policy');
      const healedAt = stage.now();
      await fleet.onLinks((link) => link.heal());
      return stage.conclude(fleet, {
        rules: [
          { ...never(fleet), what: 'any window, under the old terms' },
          { what: 'begun after', ratePerSecond: tighter.rate, burst: tighter.burst, beginsFrom: healedAt },
        ],
        healedAt,
        rate: tighter.rate,
      });
    },
  },
];

/**
 * A policy is published, NATS breaks and is mended, and another one is published. Ceilings must not notice; and the
 * second policy must reach everybody, whatever became of the server's data. Where the stage changes terms, it does so
 * while NATS is broken.
 */
async function aroundNats(
  stage: Stage,
  breakAndMend: (nats: NatsServer, link: TcpProxy) => Promise<void>,
): Promise<Outcome> {
  const nats = await stage.nats();
  const link = await TcpProxy.start({ targetPort: nats.port });
  stage.after(() => link.stop());
  const { fleet } = await stage.fleetOnRedis({ natsPort: link.port });
  if (!stage.changesTerms) await publishToAll(fleet, POLICY);
  const brokenAt = stage.now();
  await breakAndMend(nats, link);
  if (!stage.changesTerms) await publishToAll(fleet, POLICY);
  return stage.conclude(fleet, { rules: [never(fleet)], healedAt: brokenAt });
}

/** Publishes as soon as that is possible, and waits until all instances have the policy. */
async function publishToAll(fleet: Fleet, policy: PolicyDocument): Promise<void> {
  let version = 0;
  await eventually(
    async () => {
      version = (await fleet.instances[0]?.publish(policy)) ?? 0;
      return version > 0;
    },
    'the policy could be published',
    { deadlineMs: 15_000, everyMs: 100 },
  );
  await fleet.each((report) => (report.policyChanges.at(-1)?.version ?? 0) >= version, 'all know the new policy');
}
