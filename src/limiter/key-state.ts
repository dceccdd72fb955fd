import type { Meter } from '../algorithm/meter.js';
import { CELL, newRows, type Rows, rowAlone } from '../cells.js';
import type { Account } from '../lease/account.js';
import type { Sleeper } from '../lease/wake-queue.js';
import type { Policy, Terms } from '../policy/policy.js';
import type { Milliseconds, Tokens } from '../units.js';
import type { LocalState } from './local-tier.js';
import type { PaceLine } from './pace-line.js';
import type { WaitQueue } from './wait-queue.js';

// Here, so that they are constants to the compiler, which those of another module are not.
const { tokens: TOKENS, at: AT, plain: PLAIN } = CELL;

/** Of a state that has no place in the table: it may be written to, by whoever still has hold of it. */
export const NOWHERE = -1;

/** Where the row of a key lies. */
export interface Place {
  readonly slot: number;
  readonly rows: Rows;
  readonly row: number;
}

function nowhere(): Place {
  return { slot: NOWHERE, rows: newRows(1), row: 0 };
}

/**
 * One key of one policy with all that there may be about it: its local bucket, its account with the ceiling, its queue. There
 * is one while somebody needs more than the key's numbers, and for a second or so after that.
 */
export class KeyState implements LocalState, Sleeper {
  readonly key: string;
  /** Stands for all keys there was no room for. */
  readonly overflow: boolean;
  /** Where it lies in the table; `NOWHERE`: dropped, or the bucket of the overflow. */
  slot: number;
  rows: Rows;
  /** The number of its row there. */
  row: number;
  /** The policy these terms are of; another one in force means that the state must be re-shaped. */
  policy: Policy;
  terms: Terms;
  /** The local tier, where it is no token bucket. */
  meter: Meter | undefined;
  account: Account | undefined;
  /** Callers of `acquire` that wait; undefined while there are none. */
  waiters: WaitQueue | undefined;
  /** Undefined: nobody has asked for a slot yet. */
  pace: PaceLine | undefined;
  /** Nothing passes before this, on the monotonic clock; `-Infinity`: the key is not blocked. */
  blockEnd: Milliseconds = Number.NEGATIVE_INFINITY;
  wakeAt: Milliseconds = Number.POSITIVE_INFINITY;

  /** @param place where its row lies; left out: it has one of its own, and stands for all there is no room for */
  constructor(key: string, policy: Policy, terms: Terms, { slot, rows, row }: Place = nowhere()) {
    this.key = key;
    this.overflow = slot === NOWHERE;
    this.slot = slot;
    this.rows = rows;
    this.row = row;
    this.policy = policy;
    this.terms = terms;
  }

  /** Whether it is what the table has for its key. */
  get kept(): boolean {
    return this.slot !== NOWHERE;
  }

  get tokens(): Tokens {
    return this.rows.cells[this.row * this.rows.width + TOKENS] as number;
  }
  set tokens(tokens: Tokens) {
    this.rows.cells[this.row * this.rows.width + TOKENS] = tokens;
  }

  get at(): Milliseconds {
    return this.rows.cells[this.row * this.rows.width + AT] as number;
  }
  set at(at: Milliseconds) {
    this.rows.cells[this.row * this.rows.width + AT] = at;
  }

  /** The edition of the policy under which the cells alone decide; 0: they don't. */
  set plain(edition: number) {
    this.rows.cells[this.row * this.rows.width + PLAIN] = edition;
  }

  /** Takes its numbers with it: its row is another's from now on. */
  leaveRow(): void {
    this.rows = rowAlone(this.rows, this.row);
    this.row = 0;
    this.slot = NOWHERE;
  }
}
