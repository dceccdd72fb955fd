import { CELLS_A_KEY, CELLS_A_LEASE } from '../cells.js';
import type { LeasePlace } from '../lease/lease-row.js';
import type { Held } from './held.js';

const ROW_BITS = 9;
/** Keys a page. */
const ROWS = 1 << ROW_BITS;
const ROW_MASK = ROWS - 1;
/** The end of a page's list of free rows. */
const NONE = -1;

/** Some hundred keys: the cells of each, and all else that is kept for it. */
interface Page {
  readonly cells: Float64Array;
  readonly held: (Held | undefined)[];
  /** There once one of its keys has had a ceiling. */
  leaseCells: Float64Array | undefined;
  live: number;
  /** The first free row; the first cell of each names the next. */
  free: number;
}

const NO_CELLS = new Float64Array(0);

/**
 * Where the keys of a policy lie in memory: in pages that come as they are needed, and go when nothing is left in them.
 * No step of growing or shrinking is larger than a page. A key's slot is the number of its page, and of its row in it.
 */
export class KeyPages {
  /** The cells of each page: apart, so that whoever needs no more reads no more. */
  readonly cells: Float64Array[] = [];
  readonly #pages: (Page | undefined)[] = [];
  /** Numbers of the pages that have a free row; among them some that were let go. */
  readonly #roomy: number[] = [];
  /** Numbers of pages that were let go. */
  readonly #vacant: number[] = [];
  #size = 0;
  /** Pages there are now. */
  #held = 0;

  get size(): number {
    return this.#size;
  }

  /** All slots are below this. */
  get extent(): number {
    return this.#pages.length << ROW_BITS;
  }

  /** A free slot. Its cells are zero. */
  take(): number {
    const number = this.#pageWithRoom();
    const page = this.#pages[number] as Page;
    const row = page.free;
    page.free = page.cells[row * CELLS_A_KEY] as number;
    page.cells[row * CELLS_A_KEY] = 0;
    page.live += 1;
    this.#size += 1;
    if (page.free === NONE) this.#roomy.pop();
    return (number << ROW_BITS) | row;
  }

  put(slot: number, held: Held): void {
    (this.#pages[pageOf(slot)] as Page).held[slot & ROW_MASK] = held;
  }

  /** Where the account of the key in a slot has its numbers. */
  leasePlace(slot: number): LeasePlace {
    const page = this.#pages[pageOf(slot)] as Page;
    page.leaseCells ??= new Float64Array(ROWS * CELLS_A_LEASE);
    return { cells: page.cells, leaseCells: page.leaseCells, row: slot & ROW_MASK };
  }

  /** What lies in a slot; undefined: nothing. */
  at(slot: number): Held | undefined {
    return this.#pages[pageOf(slot)]?.held[slot & ROW_MASK];
  }

  /** Frees a slot. */
  give(slot: number): void {
    const number = pageOf(slot);
    const page = this.#pages[number] as Page;
    const row = slot & ROW_MASK;
    const first = firstCellOf(slot);
    page.held[row] = undefined;
    page.cells.fill(0, first, first + CELLS_A_KEY);
    page.cells[first] = page.free;
    if (page.free === NONE) this.#roomy.push(number);
    page.free = row;
    page.live -= 1;
    this.#size -= 1;
    // Where the others have little room it stays, or one key that comes and goes would make and drop it each time.
    if (page.live > 0 || this.#size > (this.#held - 1.5) * ROWS) return;
    this.#held -= 1;
    this.#pages[number] = undefined;
    this.cells[number] = NO_CELLS;
    this.#vacant.push(number);
  }

  /** All slots in which something lies. */
  *slots(): Iterable<number> {
    for (let slot = 0; slot < this.extent; slot++) if (this.at(slot) !== undefined) yield slot;
  }

  #pageWithRoom(): number {
    for (let number = this.#roomy.at(-1); number !== undefined; number = this.#roomy.at(-1)) {
      if (this.#pages[number] !== undefined) return number;
      this.#roomy.pop();
    }
    const number = this.#vacant.pop() ?? this.#pages.length;
    const page = newPage();
    this.#held += 1;
    this.#pages[number] = page;
    this.cells[number] = page.cells;
    this.#roomy.push(number);
    return number;
  }
}

/** Which page a slot lies in. */
export function pageOf(slot: number): number {
  return slot >>> ROW_BITS;
}

/** Where in its page's cells the row of a slot begins. */
export function firstCellOf(slot: number): number {
  return (slot & ROW_MASK) * CELLS_A_KEY;
}

function newPage(): Page {
  const cells = new Float64Array(ROWS * CELLS_A_KEY);
  for (let row = 0; row < ROWS; row++) cells[row * CELLS_A_KEY] = row + 1 < ROWS ? row + 1 : NONE;
  return { cells, held: new Array(ROWS).fill(undefined), leaseCells: undefined, live: 0, free: 0 };
}
