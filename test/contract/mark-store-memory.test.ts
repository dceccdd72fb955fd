import { expect, it } from 'vitest';
import { MemoryMarks } from '../../src/ceiling/memory-marks.js';
import { blockOf, describeMarkStore } from './mark-store.js';

function memoryMarks() {
  let now = 1_800_000_000_000_000;
  const store = new MemoryMarks(() => now);
  return {
    store,
    pass: async (us: number) => {
      now += us;
    },
    lose: async () => store.lose(),
    close: async () => {},
  };
}

describeMarkStore('memory', async () => memoryMarks());

it('marks in memory on which nothing rests any more are dropped', async () => {
  const { store, pass } = memoryMarks();
  for (let i = 0; i < 1_000; i++) await store.mark(blockOf(`k${i}`, [1_000_000]));
  await store.mark(blockOf('long', [600_000_000]));
  expect(store.size).toBe(1_001);
  await pass(61_000_000);
  await store.feed('', 0, false);
  expect(store.size).toBe(1);
});

it('a store in this process tells within the call, until nobody listens', async () => {
  const { store } = memoryMarks();
  const heard: string[] = [];
  const stop = store.listen(({ mark }) => heard.push(mark.key));
  void store.mark(blockOf('k', [1_000_000]));
  expect(heard).toEqual(['k']);
  stop();
  void store.mark(blockOf('l', [1_000_000]));
  expect(heard).toEqual(['k']);
});

it('what an older copy of the data has is told under another era', async () => {
  const { store } = memoryMarks();
  await store.mark(blockOf('before', [60_000_000]));
  const snapshot = store.snapshot();
  await store.mark(blockOf('after', [60_000_000]));
  const known = await store.feed('', 0, false);
  store.failover(snapshot);
  const news = await store.feed(known.era, known.seq, false);
  expect(news).toMatchObject({ fresh: true, born: 1, seq: 1 });
  expect(news.marks.map(({ key }) => key)).toEqual(['before']);
});
