import { LEASE_CELL, type Rows, rowAlone, widen } from '../cells.js';
import type { Microseconds, MicroTokens, Milliseconds } from '../units.js';
import type { Demand } from './sizing.js';
import type { Sleeper } from './wake-queue.js';
import type { Wallet } from './wallet.js';

/** Where the lease of a key has its numbers. */
export interface LeasePlace {
  readonly rows: Rows;
  /** The number of its row there. */
  readonly row: number;
}

/**
 * The numbers of one key's lease under their names. They lie in pages, where each takes eight bytes: as fields they would
 * each be a pointer to a box, and there may be a million keys.
 */
export class LeaseRow implements Wallet, Demand, Sleeper {
  #rows: Rows;
  #row: number;

  declare balance: MicroTokens;
  declare endsAt: Milliseconds;
  /** Callers ask the keeper to renew once the balance is below this. */
  declare lowWater: MicroTokens;
  /** Asked for since demand was last measured. */
  declare attempted: MicroTokens;
  /** Asking before this is useless; 0: ask whenever there is need. */
  declare blockedUntil: Milliseconds;
  /**
   * The need that was not met, and that `blockedUntil` and `retryAt` speak of; less than it may be there. 0: they hold
   * for any need.
   */
  declare unmet: MicroTokens;
  /** When it was last seen to be in use. */
  declare activeAt: Milliseconds;
  /** What the store takes this holder to hold, or less: the balance can come back up to this without anybody's leave. */
  declare known: MicroTokens;
  declare level: number;
  /** The span of demand to hold ready, as the last reply said. */
  declare toldHorizonMs: Milliseconds;
  /** When the unmet need could be met at the earliest, as the last reply said. */
  declare retryAt: Milliseconds;
  /** Of the bucket, as the last reply said; `certainUntil` likewise. */
  declare incarnation: Microseconds;
  declare certainUntil: Microseconds;
  /** Taken from this incarnation of the bucket, net. */
  declare taken: MicroTokens;
  declare demandSum: MicroTokens;
  declare demandSpanMs: Milliseconds;
  declare demandAt: Milliseconds;
  declare wakeAt: Milliseconds;
  /** Until then the store is certain to have a record of this holder, without which it believes no refund. */
  declare recordUntil: Milliseconds;
  declare demandFirst: MicroTokens;
  declare marks: number;

  static {
    for (const [name, cell] of Object.entries(LEASE_CELL)) {
      Object.defineProperty(LeaseRow.prototype, name, {
        get(this: LeaseRow) {
          const { cells, width } = this.#rows;
          return cells[this.#row * width + cell];
        },
        set(this: LeaseRow, value: number) {
          const { cells, width } = this.#rows;
          cells[this.#row * width + cell] = value;
        },
      });
    }
  }

  constructor({ rows, row }: LeasePlace) {
    this.#rows = rows;
    this.#row = row;
  }

  /** Makes it one of which nothing has been asked. */
  open(now: Milliseconds): void {
    widen(this.#rows);
    for (const name of Object.keys(LEASE_CELL) as (keyof typeof LEASE_CELL)[]) this[name] = 0;
    this.endsAt = Number.NEGATIVE_INFINITY;
    this.activeAt = now;
    this.demandAt = now;
    this.demandFirst = -1;
    this.wakeAt = Number.POSITIVE_INFINITY;
    this.recordUntil = Number.NEGATIVE_INFINITY;
  }

  /** Takes its numbers with it: the row of its key is another's from now on. */
  leaveRow(): void {
    const rows = rowAlone(this.#rows, this.#row);
    for (const name of Object.keys(LEASE_CELL) as (keyof typeof LEASE_CELL)[]) this[name] = 0;
    this.#rows = rows;
    this.#row = 0;
  }
}
