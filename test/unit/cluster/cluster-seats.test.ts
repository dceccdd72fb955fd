import { expect, it } from 'vitest';
import { MemoryCeiling } from '../../../src/ceiling/memory-ceiling.js';
import type { SeatStore } from '../../../src/ceiling/seat-store.js';
import { clusterCeiling, serveCluster } from '../../../src/cluster/index.js';
import { createLimiter } from '../../../src/create-limiter.js';
import { describeSeatStore } from '../../contract/seat-store.js';
import { eventually } from '../../support/eventually.js';
import { FakeChannel } from './channel-pair.js';

describeSeatStore('the primary of a cluster', async () => {
  let now = 1_800_000_000_000_000;
  const server = serveCluster({ ceiling: new MemoryCeiling({ clock: () => now }) });
  const { worker, primary } = FakeChannel.pair();
  server.attach(primary);
  const ceiling = clusterCeiling({ channel: worker });
  await eventually(() => ceiling.ready, 'the primary serves');
  return {
    store: ceiling.seats as SeatStore,
    pass: async (us) => {
      now += us;
    },
    close: async () => {
      await ceiling.close();
      await server.close();
    },
  };
});

it('workers share the seats of a key, which come to one when another leaves', async () => {
  const server = serveCluster();
  const policies = [{ name: 'exports', concurrency: { limit: 2 } }];
  const pairs = [FakeChannel.pair(), FakeChannel.pair()];
  for (const { primary } of pairs) server.attach(primary);
  const ceilings = pairs.map(({ worker }) => clusterCeiling({ channel: worker }));
  for (const ceiling of ceilings) await eventually(() => ceiling.ready, 'the primary serves');
  const limiters = await Promise.all(ceilings.map((ceiling) => createLimiter({ ceiling, policies, telemetry: false })));
  const [a, b] = limiters.map((limiter) => limiter.policy('exports'));
  const seats = [await a?.enter('k'), await b?.enter('k')];
  expect(seats.map((seat) => seat?.allowed)).toEqual([true, true]);
  expect((await a?.enter('k'))?.allowed).toBe(false);
  const waits = a?.enter('k', { maxWaitMs: 5_000 });
  seats[1]?.release();
  expect((await waits)?.allowed).toBe(true);
  await Promise.all(limiters.map((limiter) => limiter.close()));
  await server.close();
});
