import type { PaceStore } from '../../../src/ceiling/pace-store.js';
import { clusterCeiling, serveCluster } from '../../../src/cluster/index.js';
import { describePaceStore } from '../../contract/pace-store.js';
import { eventually } from '../../support/eventually.js';
import { FakeChannel } from './channel-pair.js';

describePaceStore('the primary of a cluster', async () => {
  const server = serveCluster();
  const { worker, primary } = FakeChannel.pair();
  server.attach(primary);
  const ceiling = clusterCeiling({ channel: worker });
  await eventually(() => ceiling.ready, 'the primary serves');
  return {
    store: ceiling.pacer as PaceStore,
    close: async () => {
      await ceiling.close();
      await server.close();
    },
  };
});
