import { CELL, newRows, type Rows } from '../cells.js';
import type { Held } from './held.js';

const ROW_BITS = 9;
/** Keys a page. */
const ROWS = 1 << ROW_BITS;
const ROW_MASK = ROWS - 1;
/** Keys of the first page: few limiters have more, and a process may have a thousand limiters. */
const FIRST_ROWS = 16;
/** The end of a page's list of free rows. */
const NONE = -1;

/** Some hundred keys: the rows of each, and all else that is kept for it. */
interface Page {
  readonly rows: Rows;
  readonly held: (Held | undefined)[];
  live: number;
  /** The first free row; the first cell of each names the next. */
  free: number;
}

const NO_ROWS = newRows(0);

/**
 * Where the keys of a policy lie in memory: in pages that come as they are needed, and go when nothing is left in them.
 * No step of growing or shrinking is larger than a page. A key's slot is the number of its page, and of its row in it.
 */
export class KeyPages {
  /** The rows of each page: apart, so that whoever needs no more reads no more. */
  readonly rows: Rows[] = [];
  readonly #pages: (Page | undefined)[] = [];
  /** Numbers of the pages that have a free row; among them some that were let go. */
  readonly #roomy: number[] = [];
  /** Numbers of pages that were let go. */
  readonly #vacant: number[] = [];
  #size = 0;
  /** Keys there is room for in the pages there are. */
  #room = 0;

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
    const { cells, width } = page.rows;
    page.free = cells[row * width] as number;
    cells[row * width] = 0;
    page.live += 1;
    this.#size += 1;
    if (page.free === NONE) this.#roomy.pop();
    return (number << ROW_BITS) | row;
  }

  put(slot: number, held: Held): void {
    (this.#pages[pageOf(slot)] as Page).held[rowOf(slot)] = held;
  }

  /** What lies in a slot; undefined: nothing. */
  at(slot: number): Held | undefined {
    return this.#pages[pageOf(slot)]?.held[rowOf(slot)];
  }

  /** The edition of the policy under which the numbers in a slot decide. */
  edition(slot: number): number {
    const { cells, width } = this.rows[pageOf(slot)] as Rows;
    return cells[rowOf(slot) * width + CELL.plain] as number;
  }

  /** Frees a slot. */
  give(slot: number): void {
    const number = pageOf(slot);
    const page = this.#pages[number] as Page;
    const row = rowOf(slot);
    const { cells, width } = page.rows;
    page.held[row] = undefined;
    cells.fill(0, row * width, (row + 1) * width);
    cells[row * width] = page.free;
    if (page.free === NONE) this.#roomy.push(number);
    page.free = row;
    page.live -= 1;
    this.#size -= 1;
    if (page.live > 0 || number === 0) return;
    // Where the others have little room it stays, or one key that comes and goes would make and drop it each time.
    const others = this.#room - ROWS;
    if (this.#size > others - Math.min(ROWS, others) / 2) return;
    this.#room = others;
    this.#pages[number] = undefined;
    this.rows[number] = NO_ROWS;
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
    const page = newPage(number === 0 ? FIRST_ROWS : ROWS);
    this.#room += page.held.length;
    this.#pages[number] = page;
    this.rows[number] = page.rows;
    this.#roomy.push(number);
    return number;
  }
}

/** Which page a slot lies in. */
export function pageOf(slot: number): number {
  return slot >>> ROW_BITS;
}

/** Which row of its page it is. */
export function rowOf(slot: number): number {
  return slot & ROW_MASK;
}

function newPage(keys: number): Page {
  const rows = newRows(keys);
  for (let row = 0; row < keys; row++) rows.cells[row * rows.width] = row + 1 < keys ? row + 1 : NONE;
  return { rows, held: new Array(keys).fill(undefined), live: 0, free: 0 };
}
