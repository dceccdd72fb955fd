import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Rows, widen } from '../../../src/cells.js';
import { KeyPages, pageOf, rowOf } from '../../../src/limiter/key-pages.js';
import type { KeyState } from '../../../src/limiter/key-state.js';

const state = (id: number): KeyState => ({ id }) as unknown as KeyState;

function fill(pages: KeyPages, slot: number, value: number): void {
  const { cells, width } = pages.rows[pageOf(slot)] as Rows;
  cells.fill(value, rowOf(slot) * width, (rowOf(slot) + 1) * width);
}

function cellsOf(pages: KeyPages, slot: number): number[] {
  const { cells, width } = pages.rows[pageOf(slot)] as Rows;
  return [...cells.subarray(rowOf(slot) * width, (rowOf(slot) + 1) * width)];
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

  it('let go of what is empty, but for the first page and one more, and use what was let go again', () => {
    const pages = new KeyPages();
    const held = (): number => pages.rows.filter(({ cells }) => cells.length > 0).length;
    for (let round = 0; round < 5; round++) {
      const slots = Array.from({ length: 10_000 }, () => {
        const slot = pages.take();
        pages.put(slot, state(slot));
        return slot;
      });
      expect(held()).toBe(21);
      for (const slot of round % 2 === 0 ? slots : slots.reverse()) pages.give(slot);
      expect(held()).toBeLessThanOrEqual(2);
      expect(pages.extent).toBeLessThanOrEqual(21 * 512);
    }
  });

  it('keep what is in them when a page gets room for leases', () => {
    const pages = new KeyPages();
    const slots = Array.from({ length: 20 }, () => pages.take());
    for (const slot of slots) fill(pages, slot, slot + 1);
    pages.give(slots[3] as number);
    for (const rows of pages.rows) widen(rows);
    expect(pages.take()).toBe(slots[3]);
    for (const slot of slots) {
      const [tokens, at, plain, ...lease] = cellsOf(pages, slot);
      const value = slot === slots[3] ? 0 : slot + 1;
      expect([tokens, at, plain]).toEqual([value, value, value]);
      expect(new Set(lease)).toEqual(new Set([0]));
    }
  });
});
