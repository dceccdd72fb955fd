import type { Scenario } from '../scenario.js';
import { LEASE_END_MS, never, type Stage } from '../stage.js';

/** An instance breaks, and Redis does not. */
export const instanceScenarios: readonly Scenario[] = [
  {
    name: 'Two of five instances killed (SIGKILL), then started again',
    bound: '0; under-admits what they held',
    inTests: true,
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis();
      await Promise.all([fleet.instances[0]?.kill(), fleet.instances[1]?.kill()]);
      const killedAt = stage.now();
      // The others take over what these no longer ask for.
      await fleet.back(killedAt);
      await Promise.all([fleet.launch(0), fleet.launch(1)]);
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: killedAt });
    },
  },
  {
    name: 'Two of five instances stopped (SIGSTOP) beyond their leases',
    bound: '0',
    changedInTests: true,
    inTests: true,
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis();
      const stopped = fleet.instances.slice(0, 2);
      for (const instance of stopped) instance.pause();
      await stage.last(LEASE_END_MS + 200, 4_000);
      for (const instance of stopped) instance.resume();
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'Event loop of two of five instances blocked beyond their leases',
    bound: '0',
    inTests: true,
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis();
      const forMs = stage.full ? 4_000 : LEASE_END_MS + 200;
      await Promise.all(fleet.instances.slice(0, 2).map((instance) => instance.block(forMs)));
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'All instances stopped (SIGSTOP) at once, beyond their leases',
    bound: '0',
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis();
      for (const instance of fleet.instances) instance.pause();
      await stage.last(LEASE_END_MS + 200, 4_000);
      for (const instance of fleet.instances) instance.resume();
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: '50 instances killed and started again at once',
    bound: '0',
    async play(stage: Stage) {
      const { fleet } = await stage.fleetOnRedis({ limiters: 10 });
      await Promise.all(fleet.instances.map((instance) => instance.kill()));
      await Promise.all(fleet.instances.map((_, index) => fleet.launch(index)));
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
];
