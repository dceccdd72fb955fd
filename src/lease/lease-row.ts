import { CELL, CELLS_A_KEY, CELLS_A_LEASE, LEASE_CELL } from '../cells.js';
import type { Microseconds, MicroTokens, Milliseconds } from '../units.js';
import type { Demand } from './sizing.js';
import type { Sleeper } from './wake-queue.js';
import type { Wallet } from './wallet.js';

// Here, so that they are constants to the compiler, which those of another module are not.
const { balance: BALANCE, endsAt: ENDS_AT, lowWater: LOW_WATER, attempted: ATTEMPTED } = CELL;
const { blockedUntil: BLOCKED_UNTIL, unmet: UNMET, activeAt: ACTIVE_AT } = CELL;
const { known: KNOWN, level: LEVEL, toldHorizonMs: TOLD_HORIZON_MS, retryAt: RETRY_AT } = LEASE_CELL;
const { incarnation: INCARNATION, certainUntil: CERTAIN_UNTIL, taken: TAKEN, wakeAt: WAKE_AT } = LEASE_CELL;
const { recordUntil: RECORD_UNTIL, demandFirst: DEMAND_FIRST } = LEASE_CELL;
const { demandSum: DEMAND_SUM, demandSpanMs: DEMAND_SPAN_MS, demandAt: DEMAND_AT } = LEASE_CELL;

/** Where the two rows of a key lie. */
export interface LeasePlace {
  readonly cells: Float64Array;
  readonly leaseCells: Float64Array;
  /** The number of its row, in both. */
  readonly row: number;
}

/**
 * The numbers of one key's lease under their names. They lie in pages, where each takes eight bytes: as fields they would
 * each be a pointer to a box, and there may be a million keys.
 */
export class LeaseRow implements Wallet, Demand, Sleeper {
  #cells: Float64Array;
  #leaseCells: Float64Array;
  #row: number;

  constructor({ cells, leaseCells, row }: LeasePlace, now: Milliseconds) {
    this.#cells = cells;
    this.#leaseCells = leaseCells;
    this.#row = row;
    this.balance = 0;
    this.endsAt = Number.NEGATIVE_INFINITY;
    this.lowWater = 0;
    this.attempted = 0;
    this.blockedUntil = 0;
    this.unmet = 0;
    this.activeAt = now;
    leaseCells.fill(0, row * CELLS_A_LEASE, (row + 1) * CELLS_A_LEASE);
    this.demandAt = now;
    this.demandFirst = -1;
    this.wakeAt = Number.POSITIVE_INFINITY;
    this.recordUntil = Number.NEGATIVE_INFINITY;
  }

  /** Takes its numbers with it: the rows of its key are another's from now on. */
  leaveRow(): void {
    this.#cells = this.#cells.slice(this.#row * CELLS_A_KEY, (this.#row + 1) * CELLS_A_KEY);
    this.#leaseCells = this.#leaseCells.slice(this.#row * CELLS_A_LEASE, (this.#row + 1) * CELLS_A_LEASE);
    this.#row = 0;
  }

  get balance(): MicroTokens {
    return this.#cells[this.#row * CELLS_A_KEY + BALANCE] as number;
  }
  set balance(balance: MicroTokens) {
    this.#cells[this.#row * CELLS_A_KEY + BALANCE] = balance;
  }

  get endsAt(): Milliseconds {
    return this.#cells[this.#row * CELLS_A_KEY + ENDS_AT] as number;
  }
  set endsAt(endsAt: Milliseconds) {
    this.#cells[this.#row * CELLS_A_KEY + ENDS_AT] = endsAt;
  }

  /** Callers ask the keeper to renew once the balance is below this. */
  get lowWater(): MicroTokens {
    return this.#cells[this.#row * CELLS_A_KEY + LOW_WATER] as number;
  }
  set lowWater(lowWater: MicroTokens) {
    this.#cells[this.#row * CELLS_A_KEY + LOW_WATER] = lowWater;
  }

  /** Asked for since demand was last measured. */
  get attempted(): MicroTokens {
    return this.#cells[this.#row * CELLS_A_KEY + ATTEMPTED] as number;
  }
  set attempted(attempted: MicroTokens) {
    this.#cells[this.#row * CELLS_A_KEY + ATTEMPTED] = attempted;
  }

  /** Asking before this is useless; 0: ask whenever there is need. */
  get blockedUntil(): Milliseconds {
    return this.#cells[this.#row * CELLS_A_KEY + BLOCKED_UNTIL] as number;
  }
  set blockedUntil(blockedUntil: Milliseconds) {
    this.#cells[this.#row * CELLS_A_KEY + BLOCKED_UNTIL] = blockedUntil;
  }

  /**
   * The need that was not met, and that `blockedUntil` and `retryAt` speak of; less than it may be there. 0: they hold
   * for any need.
   */
  get unmet(): MicroTokens {
    return this.#cells[this.#row * CELLS_A_KEY + UNMET] as number;
  }
  set unmet(unmet: MicroTokens) {
    this.#cells[this.#row * CELLS_A_KEY + UNMET] = unmet;
  }

  /** When it was last seen to be in use. */
  get activeAt(): Milliseconds {
    return this.#cells[this.#row * CELLS_A_KEY + ACTIVE_AT] as number;
  }
  set activeAt(activeAt: Milliseconds) {
    this.#cells[this.#row * CELLS_A_KEY + ACTIVE_AT] = activeAt;
  }

  /** What the store takes this holder to hold, or less: the balance can come back up to this without anybody's leave. */
  get known(): MicroTokens {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + KNOWN] as number;
  }
  set known(known: MicroTokens) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + KNOWN] = known;
  }

  get level(): number {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + LEVEL] as number;
  }
  set level(level: number) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + LEVEL] = level;
  }

  /** The span of demand to hold ready, as the last reply said. */
  get toldHorizonMs(): Milliseconds {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + TOLD_HORIZON_MS] as number;
  }
  set toldHorizonMs(toldHorizonMs: Milliseconds) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + TOLD_HORIZON_MS] = toldHorizonMs;
  }

  /** When the unmet need could be met at the earliest, as the last reply said. */
  get retryAt(): Milliseconds {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + RETRY_AT] as number;
  }
  set retryAt(retryAt: Milliseconds) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + RETRY_AT] = retryAt;
  }

  /** Of the bucket, as the last reply said; `certainUntil` likewise. */
  get incarnation(): Microseconds {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + INCARNATION] as number;
  }
  set incarnation(incarnation: Microseconds) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + INCARNATION] = incarnation;
  }

  get certainUntil(): Microseconds {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + CERTAIN_UNTIL] as number;
  }
  set certainUntil(certainUntil: Microseconds) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + CERTAIN_UNTIL] = certainUntil;
  }

  /** Taken from this incarnation of the bucket, net. */
  get taken(): MicroTokens {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + TAKEN] as number;
  }
  set taken(taken: MicroTokens) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + TAKEN] = taken;
  }

  get demandSum(): MicroTokens {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + DEMAND_SUM] as number;
  }
  set demandSum(demandSum: MicroTokens) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + DEMAND_SUM] = demandSum;
  }

  get demandSpanMs(): Milliseconds {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + DEMAND_SPAN_MS] as number;
  }
  set demandSpanMs(demandSpanMs: Milliseconds) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + DEMAND_SPAN_MS] = demandSpanMs;
  }

  get demandAt(): Milliseconds {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + DEMAND_AT] as number;
  }
  set demandAt(demandAt: Milliseconds) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + DEMAND_AT] = demandAt;
  }

  get wakeAt(): Milliseconds {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + WAKE_AT] as number;
  }
  set wakeAt(wakeAt: Milliseconds) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + WAKE_AT] = wakeAt;
  }

  /** Until then the store is certain to have a record of this holder, without which it believes no refund. */
  get recordUntil(): Milliseconds {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + RECORD_UNTIL] as number;
  }
  set recordUntil(recordUntil: Milliseconds) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + RECORD_UNTIL] = recordUntil;
  }

  get demandFirst(): MicroTokens {
    return this.#leaseCells[this.#row * CELLS_A_LEASE + DEMAND_FIRST] as number;
  }
  set demandFirst(demandFirst: MicroTokens) {
    this.#leaseCells[this.#row * CELLS_A_LEASE + DEMAND_FIRST] = demandFirst;
  }
}
