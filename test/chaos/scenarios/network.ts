import { DoublingProxy } from '../../support/doubling-proxy.js';
import { eventually } from '../../support/eventually.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import type { Scenario } from '../scenario.js';
import { LEASE_END_MS, never, type Stage } from '../stage.js';

/** The network between instances and Redis breaks, and both of them work. */
export const networkScenarios: readonly Scenario[] = [
  {
    name: 'Replies lost, again and again',
    bound: '0',
    changedInTests: true,
    inTests: true,
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis();
      for (let round = 0; round < (stage.full ? 20 : 6); round++) {
        const link = fleet.links[round % fleet.links.length] as TcpProxy;
        link.hold('toClient');
        // Something was executed, and nobody will ever know.
        await eventually(() => link.heldBytes('toClient') > 0, 'a reply is held');
        link.cut();
        await link.heal();
      }
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'Every request executed twice, the second time up to 400 ms later',
    bound: '0',
    inTests: true,
    async play(stage: Stage) {
      const redis = await stage.redis();
      const doubling = await DoublingProxy.start({ targetPort: redis.port, delayMs: () => Math.random() * 400 });
      stage.after(() => doubling.stop());
      const fleet = await stage.fleet(
        { redis: { kind: 'server', port: doubling.port } },
        `redis://127.0.0.1:${redis.port}`,
      );
      const doubled = doubling.doubled;
      await eventually(() => doubling.doubled > doubled + 50, 'requests have been doubled');
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'Black hole: nothing passes, connections stay open',
    bound: '0',
    inTests: true,
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis();
      await fleet.onLinks(async (link) => {
        link.hold();
        await link.hangConnections();
      });
      await stage.last(LEASE_END_MS + 300, 10_000);
      await fleet.onLinks((link) => link.heal());
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'Half-open: old connections are dead and don’t say so, new ones work',
    bound: '0',
    async play(stage: Stage) {
      const redis = await stage.redis();
      const dead = await TcpProxy.start({ targetPort: redis.port });
      stage.after(() => dead.stop());
      const fleet = await stage.fleet({ redis: { kind: 'server', port: dead.port } });
      dead.hold();
      await fleet.onLinks((link) => link.retarget(redis.port));
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'Requests held for longer than their deadline, then delivered all at once, again and again',
    bound: '0',
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis();
      for (let round = 0; round < 10; round++) {
        await fleet.onLinks((link) => link.hold('toServer'));
        await stage.last(130 + 30 * round);
        await fleet.onLinks((link) => link.heal());
        await stage.last(200);
      }
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'Slow Redis: 40 to 140 ms there and back, where calls have 100 ms',
    bound: '0',
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis();
      await fleet.onLinks((link) => {
        link.latencyMs = 20;
        link.jitterMs = 50;
      });
      await stage.last(3_000, 5_000);
      await fleet.onLinks((link) => {
        link.latencyMs = 0;
        link.jitterMs = 0;
      });
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'One instance cut off alone',
    bound: '0',
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis();
      const link = fleet.links[0] as TcpProxy;
      link.hold();
      await link.hangConnections();
      const cutAt = stage.now();
      await stage.last(LEASE_END_MS + 300, 5_000);
      // The others go on as if nothing were.
      await fleet.back(cutAt);
      await link.heal();
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
];
