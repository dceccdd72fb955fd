import { expect, it } from 'vitest';
import type { MarkStore } from '../../../src/ceiling/mark-store.js';
import { MemoryCeiling } from '../../../src/ceiling/memory-ceiling.js';
import { clusterCeiling, serveCluster } from '../../../src/cluster/index.js';
import { createLimiter } from '../../../src/create-limiter.js';
import { describeMarkStore } from '../../contract/mark-store.js';
import { eventually } from '../../support/eventually.js';
import { FakeChannel } from './channel-pair.js';

describeMarkStore('the primary of a cluster', async () => {
  let now = 1_800_000_000_000_000;
  const kept = new MemoryCeiling({ clock: () => now });
  const server = serveCluster({ ceiling: kept });
  const { worker, primary } = FakeChannel.pair();
  server.attach(primary);
  const ceiling = clusterCeiling({ channel: worker });
  await eventually(() => ceiling.ready, 'the primary serves');
  return {
    store: ceiling.marks as MarkStore,
    pass: async (us) => {
      now += us;
    },
    lose: async () => kept.lose(),
    close: async () => {
      await ceiling.close();
      await server.close();
    },
  };
});

it('a worker blocks a key for the other workers, and for the primary at once', async () => {
  const server = serveCluster();
  const policies = [{ name: 'api', local: { rate: 10, burst: 10 } }];
  const pairs = [FakeChannel.pair(), FakeChannel.pair()];
  for (const { primary } of pairs) server.attach(primary);
  const ceilings = pairs.map(({ worker }) => clusterCeiling({ channel: worker }));
  for (const ceiling of ceilings) await eventually(() => ceiling.ready, 'the primary serves');
  const limiters = await Promise.all(
    [server.ceiling, ...ceilings].map((ceiling) =>
      createLimiter({ ceiling, policies, telemetry: false, blocksEveryMs: 50 }),
    ),
  );
  const [first, a, b] = limiters.map((limiter) => limiter.policy('api'));
  await a?.block('k', 60_000);
  expect(first?.tryAcquire('k')).toBe(false);
  await eventually(() => b?.decide('k').allowed === false, 'the other worker has heard of it');
  await b?.unblock('k');
  await eventually(() => a?.tryAcquire('k') === true, 'the first has heard that it is lifted');
  await Promise.all(limiters.map((limiter) => limiter.close()));
  await server.close();
});

it('a worker of a primary whose ceiling keeps no marks complains only where one is made', async () => {
  const kept = new MemoryCeiling({ clock: () => 1 });
  const server = serveCluster({
    ceiling: {
      ready: true,
      lease: (calls) => kept.lease(calls),
      heartbeat: (group, holder) => kept.heartbeat(group, holder),
      close: async () => {},
    },
  });
  const { worker, primary } = FakeChannel.pair();
  server.attach(primary);
  const ceiling = clusterCeiling({ channel: worker });
  await eventually(() => ceiling.ready, 'the primary serves');
  const troubles: Error[] = [];
  const limiter = await createLimiter({
    ceiling,
    policies: [{ name: 'api', local: { rate: 10, burst: 10 } }],
    telemetry: false,
    blocksEveryMs: 50,
    onTrouble: (error) => troubles.push(error),
  });
  const api = limiter.policy('api');
  await expect(api.block('k', 60_000)).rejects.toThrow('keeps no marks');
  expect(api.tryAcquire('k')).toBe(false);
  expect(troubles).toEqual([]);
  await limiter.close();
  await server.close();
});
