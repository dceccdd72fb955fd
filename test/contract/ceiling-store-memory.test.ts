import { MemoryCeiling } from '../../src/ceiling/memory-ceiling.js';
import { describeCeilingStore } from './ceiling-store.js';

describeCeilingStore('memory', async () => {
  let now = 1_800_000_000_000_000;
  const store = new MemoryCeiling({ clock: () => now++, newStore: 'full' });
  return {
    store,
    pass: async (us) => {
      now += Math.round(us);
    },
    close: () => store.close(),
  };
});
