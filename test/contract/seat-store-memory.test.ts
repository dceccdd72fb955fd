import { expect, it } from 'vitest';
import { MemorySeats } from '../../src/ceiling/memory-seats.js';
import { describeSeatStore, seatCall } from './seat-store.js';

function memorySeats() {
  let now = 1_800_000_000_000_000;
  const store = new MemorySeats(() => now++);
  return {
    store,
    pass: async (us: number) => {
      now += us;
    },
    close: async () => {},
  };
}

describeSeatStore('memory', async () => memorySeats());

it('keys in memory that nobody sits at any more are dropped', async () => {
  const { store, pass } = memorySeats();
  for (let i = 0; i < 1_000; i++) store.holdNow(seatCall({ want: 1 }));
  expect(store.size).toBe(1_000);
  await pass(11_000_000);
  for (let i = 0; i < 1_000; i++) store.holdNow(seatCall({ key: 'one', want: 1 }));
  expect(store.size).toBe(1);
});
