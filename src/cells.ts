/**
 * The numbers of one key lie side by side in one `Float64Array`, so that a decision waits for a line or two of memory. As
 * fields they would each be a pointer to a box of its own: at a million keys, where every line is far away, that is what
 * decides how long a decision takes. These are the columns of such a row.
 */
export const CELL = {
  /** The local bucket. */
  tokens: 0,
  at: 1,
  /** The edition of the policy under which these numbers alone decide; 0: they don't. */
  plain: 2,
} as const;

const LOCAL_CELLS = 3;

/**
 * The rest of the row of a key that has a ceiling: its lease. A decision looks at the first six, of which the last two only
 * where the wallet does not suffice; the others are what the keeper must remember.
 */
export const LEASE_CELL = {
  /** The wallet, what it is renewed below, and what has been asked of it since demand was last measured. */
  balance: 3,
  endsAt: 4,
  lowWater: 5,
  attempted: 6,
  /** Asking the store is useless before this, for a need of that much or more. */
  blockedUntil: 7,
  unmet: 8,
  /** When the ceiling was last seen to be in use. */
  activeAt: 9,
  known: 10,
  level: 11,
  toldHorizonMs: 12,
  retryAt: 13,
  incarnation: 14,
  certainUntil: 15,
  taken: 16,
  demandSum: 17,
  demandSpanMs: 18,
  demandAt: 19,
  wakeAt: 20,
  recordUntil: 21,
  demandFirst: 22,
  /** What is no number: three bits, and which of the store's eras it has last heard of. */
  marks: 23,
} as const;

const ALL_CELLS = 24;

/** Rows of some keys, one after the other. */
export interface Rows {
  cells: Float64Array;
  /** Cells of a row: those of a lease are there once one of the keys has had a ceiling. */
  width: number;
}

export function newRows(keys: number): Rows {
  return { cells: new Float64Array(keys * LOCAL_CELLS), width: LOCAL_CELLS };
}

/** The row of one key alone. */
export function rowAlone({ cells, width }: Rows, row: number): Rows {
  return { cells: cells.slice(row * width, (row + 1) * width), width };
}

/** Makes room for leases where there is none yet. */
export function widen(rows: Rows): void {
  const { cells, width } = rows;
  if (width === ALL_CELLS) return;
  const keys = cells.length / width;
  rows.cells = new Float64Array(keys * ALL_CELLS);
  rows.width = ALL_CELLS;
  for (let row = 0; row < keys; row++) rows.cells.set(cells.subarray(row * width, (row + 1) * width), row * ALL_CELLS);
}
