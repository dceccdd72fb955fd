import { describe, expect, it } from 'vitest';
import type { CeilingStore } from '../../../src/ceiling/ceiling-store.js';
import { Fleet } from '../../../src/lease/fleet.js';
import { ManualTime } from '../../../src/testing.js';

/** A store that counts who has been heard of, and nothing else. */
function countingStore(): CeilingStore {
  const members = new Set<string>();
  return {
    ready: true,
    lease: () => [],
    async heartbeat(_group: string, holder: string) {
      return members.add(holder).size;
    },
    async close() {},
  };
}

function fleetsOn(time: ManualTime, size: number): Fleet[] {
  const store = countingStore();
  return Array.from({ length: size }, (_, index) => {
    const holder = `holder-${index}`;
    return new Fleet({ store, time, random: () => 0.5, group: 'default', holder, answered: () => {} });
  });
}

describe('Fleet', () => {
  it('takes no size for known that it has only from the moment it joined: those who start with it are not in it', async () => {
    const time = new ManualTime();
    const fleets = fleetsOn(time, 5);
    for (const fleet of fleets) fleet.start();
    await time.advance(0);
    expect(fleets.map(({ size }) => size)).toEqual([0, 0, 0, 0, 0]);
  });

  it('knows all of a fleet that started together within a second', async () => {
    const time = new ManualTime();
    const fleets = fleetsOn(time, 5);
    for (const fleet of fleets) {
      fleet.start();
      await time.advance(100);
    }
    await time.advance(1_000);
    expect(fleets.map(({ size }) => size)).toEqual([5, 5, 5, 5, 5]);
  });

  it('beats every five seconds in the long run', async () => {
    const time = new ManualTime();
    let beats = 0;
    const store = { ...countingStore(), heartbeat: async () => ++beats };
    const fleet = new Fleet({ store, time, random: () => 0.5, group: 'default', holder: 'one', answered: () => {} });
    fleet.start();
    await time.advance(60_000);
    const before = beats;
    await time.advance(60_000);
    expect(beats - before).toBe(12);
    fleet.close();
    expect(time.pending).toBe(0);
  });
});
