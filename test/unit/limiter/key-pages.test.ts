import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CELLS_A_KEY } from '../../../src/cells.js';
import { firstCellOf, KeyPages, pageOf } from '../../../src/limiter/key-pages.js';
import type { KeyState } from '../../../src/limiter/key-state.js';

const state = (id: number): KeyState => ({ id }) as unknown as KeyState;

function fill(pages: KeyPages, slot: number, value: number): void {
  const first = firstCellOf(slot);
  (pages.cells[pageOf(slot)] as Float64Array).fill(value, first, first + CELLS_A_KEY);
}

function cellsOf(pages: KeyPages, slot: number): number[] {
  const first = firstCellOf(slot);
  return [...(pages.cells[pageOf(slot)] as Float64Array).subarray(first, first + CELLS_A_KEY)];
}

describe('key pages', () => {
  it('give each key a row of its own, cleared, whatever came and went before', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat()), { minLength: 1, maxLength: 20 }), (steps) => {
        const pages = new KeyPages();
        const live: { slot: number; id: number }[] = [];
        let id = 0;
        for (const [add, pick] of steps) {
          // In bulk, so that pages fill and empty.
          for (let i = 0; i < 300; i++) {
            if (add) {
              const slot = pages.take();
              if (pages.at(slot) || cellsOf(pages, slot).some((cell) => cell !== 0))
                expect.fail('Expected an empty slot.');
              pages.put(slot, state(++id));
              fill(pages, slot, id);
              live.push({ slot, id });
            } else {
              const [gone] = live.splice((pick + i * 7) % (live.length + 1), 1);
              if (gone) pages.give(gone.slot);
            }
          }
          expect(pages.size).toBe(live.length);
          expect([...pages.slots()]).toHaveLength(live.length);
          expect(new Set(live.map(({ slot }) => slot)).size).toBe(live.length);
          const wrong = live.filter(
            ({ slot, id }) =>
              slot >= pages.extent ||
              (pages.at(slot) as unknown as { id: number }).id !== id ||
              cellsOf(pages, slot).some((cell) => cell !== id),
          );
          expect(wrong).toEqual([]);
        }
      }),
      { numRuns: 15 },
    );
  });

  it('let go of what is empty, but for one page, and use what was let go again', () => {
    const pages = new KeyPages();
    const held = (): number => pages.cells.filter(({ length }) => length > 0).length;
    for (let round = 0; round < 5; round++) {
      const slots = Array.from({ length: 10_000 }, () => {
        const slot = pages.take();
        pages.put(slot, state(slot));
        return slot;
      });
      expect(held()).toBe(20);
      for (const slot of round % 2 === 0 ? slots : slots.reverse()) pages.give(slot);
      expect(held()).toBe(1);
      expect(pages.extent).toBeLessThanOrEqual(20 * 512);
    }
  });
});
