import { eventually } from '../../support/eventually.js';
import { RedisServer } from '../../support/redis-server.js';
import type { Scenario } from '../scenario.js';
import { LEASE_END_MS, never, type Stage, unregistered } from '../stage.js';
import { withRedis } from './redis-data.js';

const HOUR_MS = 3_600_000;
/** Keys that take a second or more to load, at a thousandth of a second each. */
const SLOW_KEYS = 1_500;

const noFakeTime = (): string | undefined => (RedisServer.canFakeTime() ? undefined : 'libfaketime is not installed');

/** Redis answers, and says no; or it says yes and has the time wrong. */
export const redisErrorScenarios: readonly Scenario[] = [
  {
    name: 'READONLY: demoted to a replica, promoted again',
    bound: '0',
    inTests: true,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis();
      // Nobody listens there, so its own data stay.
      await withRedis(redis.port, (client) => client.replicaof('127.0.0.1', '1'));
      await stage.last(LEASE_END_MS + 200, 3_000);
      await withRedis(redis.port, (client) => client.replicaof('NO', 'ONE'));
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'LOADING: the server reads its data for a second or more',
    bound: '0',
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis(
        {},
        { args: ['--enable-debug-command', 'local', '--loading-process-events-interval-bytes', '1024'] },
      );
      await withRedis(redis.port, async (client) => {
        await client.call('DEBUG', 'POPULATE', String(SLOW_KEYS), 'slow', '100');
        await client.config('SET', 'key-load-delay', '1000');
        await client.call('DEBUG', 'RELOAD');
      });
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'NOSCRIPT: SCRIPT FLUSH, again and again',
    bound: '0',
    inTests: true,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis();
      const faultAt = stage.now();
      await withRedis(redis.port, async (client) => {
        for (let round = 0; round < 5; round++) {
          await client.script('FLUSH');
          // The first to come has to bring the text again.
          await eventually(
            async () => (await client.info('memory')).includes('number_of_cached_scripts:1'),
            'reloaded',
          );
        }
      });
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: faultAt });
    },
  },
  {
    name: 'OOM: maxmemory reached, noeviction',
    bound: '0',
    inTests: true,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis();
      await withRedis(redis.port, (client) => client.config('SET', 'maxmemory', '1'));
      await stage.last(LEASE_END_MS + 200, 3_000);
      await withRedis(redis.port, (client) => client.config('SET', 'maxmemory', '0'));
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
  {
    name: 'Redis’s clock set forward by an hour',
    bound: 'min(B, R·step) + min(U, R·lease) in windows with the step; min(U, R·lease) a lease long; else 0',
    inTests: true,
    missing: noFakeTime,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis({}, { fakeTime: true });
      const steppedAt = stage.now();
      await redis.shiftClock(HOUR_MS);
      const steppedBy = stage.now();
      const terms = { ratePerSecond: fleet.rate, burst: fleet.burst };
      const endedEarly = unregistered(fleet);
      const rules = [
        { ...terms, what: 'ended before the step', endsBefore: steppedAt },
        { ...terms, what: 'with the step', beginsBefore: steppedBy, extra: fleet.burst + endedEarly },
        {
          ...terms,
          what: 'begun within a lease of the step',
          beginsFrom: steppedBy,
          beginsBefore: steppedBy + LEASE_END_MS,
          extra: endedEarly,
        },
        { ...terms, what: 'begun a lease after the step', beginsFrom: steppedBy + LEASE_END_MS },
      ];
      return stage.conclude(fleet, { rules, healedAt: steppedAt });
    },
  },
  {
    name: 'Redis’s clock set back by an hour',
    bound: '0',
    changedInTests: true,
    inTests: true,
    missing: noFakeTime,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis({}, { fakeTime: true });
      const steppedAt = stage.now();
      await redis.shiftClock(-HOUR_MS);
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: steppedAt });
    },
  },
  {
    name: 'Redis’s clock set back and forth by 80 ms, again and again',
    bound: '0',
    missing: noFakeTime,
    async play(stage: Stage) {
      const { fleet, redis } = await stage.fleetOnRedis({}, { fakeTime: true });
      const rounds = 10;
      for (let round = 0; round < rounds; round++) {
        await redis.shiftClock(round % 2 === 0 ? -80 : 80);
        await stage.last(150);
      }
      // A step back within maxSkew is waited out, so that the step forward after it brings nothing.
      return stage.conclude(fleet, { rules: [never(fleet)], healedAt: stage.now() });
    },
  },
];
