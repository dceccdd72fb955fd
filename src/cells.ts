/**
 * The numbers of one key that a decision reads and writes lie side by side in one `Float64Array`, so that it waits for
 * a line or two of memory. As fields they would each be a pointer to a box of its own: at a million keys, where every line
 * is far away, that is what decides how long a decision takes. These are the columns of such a row.
 */
export const CELL = {
  /** The local bucket. */
  tokens: 0,
  at: 1,
  /** The wallet, what it is renewed below, and what has been asked of it since demand was last measured. */
  balance: 2,
  endsAt: 3,
  lowWater: 4,
  attempted: 5,
  /** The edition of the policy under which these numbers alone decide; 0: they don't. */
  plain: 6,
  /** Asking the store is useless before this, for a need of that much or more. */
  blockedUntil: 7,
  unmet: 8,
  /** When its ceiling was last seen to be in use. */
  activeAt: 9,
} as const;

/** Cells of a row. */
export const CELLS_A_KEY = 10;

/**
 * What the keeper must remember of a lease besides: a row of its own, in pages that only keys with a ceiling have. Nothing
 * of it is looked at where the wallet suffices.
 */
export const LEASE_CELL = {
  known: 0,
  level: 1,
  toldHorizonMs: 2,
  retryAt: 3,
  incarnation: 4,
  certainUntil: 5,
  taken: 6,
  demandSum: 7,
  demandSpanMs: 8,
  demandAt: 9,
  wakeAt: 10,
  recordUntil: 11,
  demandFirst: 12,
} as const;

/** Cells of such a row. */
export const CELLS_A_LEASE = 13;
