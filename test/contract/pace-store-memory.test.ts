import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MemoryPace } from '../../src/ceiling/memory-pace.js';
import { newSchedule, reserveSlots } from '../../src/ceiling/pace-ledger.js';
import { MICRO } from '../../src/units.js';
import { describePaceStore, paceCall } from './pace-store.js';

const START = 1_800_000_000_000_000;

describePaceStore('memory', async () => ({ store: new MemoryPace(() => START), close: async () => {} }));

it('keys in memory whose last slot is an hour ago are dropped', () => {
  let now = START;
  const store = new MemoryPace(() => now);
  for (let i = 0; i < 500; i++) store.paceNow(paceCall());
  now += 3_700_000_000;
  for (let i = 0; i < 500; i++) store.paceNow(paceCall({ key: 'one', seq: 10_000 + i }));
  expect(store.size).toBe(1);
});

it('slots of a key are a cost ÷ rate apart whoever reserves them, in whatever order calls come, twice or late', () => {
  const step = fc.record({
    holder: fc.nat(3),
    older: fc.constantFrom(0, 0, 0, 0, 1, 3),
    costs: fc.array(fc.integer({ min: 1, max: 3 * MICRO }), { maxLength: 5 }),
    passes: fc.constantFrom(0, 1, 1_000, 300_000, 5_000_000, -50_000),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 60 }), fc.nat(20), (steps, queue) => {
      const terms = { rateNum: 7, rateDen: 3, queue: queue * MICRO };
      let now = START;
      let latest = now;
      const schedule = newSchedule(paceCall(terms), now);
      const given = new Map<number, number>();
      for (const [index, { holder, older, costs, passes }] of steps.entries()) {
        // Back only as far as a clock may step.
        now = Math.max(now + passes, latest - 100_000);
        latest = Math.max(latest, now);
        const seq = Math.max(1, index + 1 - older);
        const { slots } = reserveSlots(schedule, paceCall({ ...terms, holder: `holder-${holder}`, seq, costs }), now);
        for (const [place, slot] of slots.entries()) {
          // A repeat's slots are those it has already.
          if (!given.has(slot)) given.set(slot, costs[place] ?? 0);
          expect(slot - now).toBeLessThanOrEqual(Math.ceil((terms.queue / 7) * 3) + 100_000);
        }
      }
      const sorted = [...given].sort(([a], [b]) => a - b);
      for (const [index, [slot, cost]] of sorted.entries()) {
        const next = sorted[index + 1];
        if (next) expect(next[0] - slot).toBeGreaterThanOrEqual(Math.ceil((cost / 7) * 3));
      }
    }),
  );
});
