import { LEASE_CELL, type Rows } from '../cells.js';
import { Account, type AccountHome } from '../lease/account.js';
import type { Keeper } from '../lease/keeper.js';
import type { Alarms, WakeQueue } from '../lease/wake-queue.js';
import { liveBalance } from '../lease/wallet.js';
import { isLeased } from '../policy/policy.js';
import type { MicroTokens, Milliseconds } from '../units.js';
import { type KeyPages, pageOf, rowOf } from './key-pages.js';
import type { KeyState } from './key-state.js';
import type { PolicyState } from './policy-state.js';

const { balance: BALANCE, endsAt: ENDS_AT, wakeAt: WAKE_AT } = LEASE_CELL;

/** The accounts of the keys of one policy. At rest one is nothing but its row, and is made of it when it is asked for. */
export class KeptAccounts implements AccountHome, Alarms<number> {
  readonly wakes: WakeQueue<number>;
  readonly #owner: PolicyState;
  readonly #pages: KeyPages;
  readonly #keeper: Keeper;
  /** The one that was made last: a key that is asked for is often the next as well. */
  #latest: Account | undefined;

  constructor(owner: PolicyState, pages: KeyPages, keeper: Keeper) {
    this.#owner = owner;
    this.#pages = pages;
    this.#keeper = keeper;
    this.wakes = keeper.wakes.ofHome((slot) => this.at(slot), this);
  }

  /** The account of the key in `slot`, if its policy has a ceiling that is leased from. */
  at(slot: number): Account | undefined {
    const held = this.#pages.at(slot);
    if (typeof held !== 'string') return held?.account;
    if (this.#latest?.slot === slot && this.#latest.home) return this.#latest;
    // Its numbers decide, so its terms are the policy's.
    const policy = this.#owner.ofEdition(this.#pages.edition(slot));
    if (!isLeased(policy.terms)) return undefined;
    const place = { rows: this.#rowsOf(slot), row: rowOf(slot), slot, home: this };
    this.#latest = new Account(held, this.#owner, policy, this.#keeper.clocks, place);
    return this.#latest;
  }

  /** A new one for the key of a state. */
  open({ key, policy, slot, kept, rows, row }: KeyState, now: Milliseconds): Account {
    const place = { rows, row, slot, home: kept ? this : undefined };
    const account = new Account(key, this.#owner, policy, this.#keeper.clocks, place);
    account.open(now);
    return account;
  }

  /** All there are, or those that do not rest. */
  *all(busyOnly?: boolean): Iterable<Account> {
    for (const slot of this.#pages.slots()) {
      if (busyOnly && typeof this.#pages.at(slot) === 'string') continue;
      const account = this.at(slot);
      if (account) yield account;
    }
  }

  /** What the wallet of the key in `slot` holds, if it has one; 0 once its lease has ended. */
  heldAt(slot: number, now: Milliseconds): MicroTokens {
    const { cells, width } = this.#rowsOf(slot);
    if (width <= BALANCE) return 0;
    const first = rowOf(slot) * width;
    return liveBalance({ balance: cells[first + BALANCE] as number, endsAt: cells[first + ENDS_AT] as number }, now);
  }

  keep(account: Account): void {
    if (typeof this.#pages.at(account.slot) === 'string') this.#pages.put(account.slot, account);
  }

  rested(account: Account): void {
    if (this.#pages.at(account.slot) === account) this.#pages.put(account.slot, account.key);
  }

  /** The key in `slot` is being dropped. */
  forget(slot: number): void {
    const account = this.at(slot);
    if (account) this.#keeper.forget(account);
  }

  wakeAt(slot: number): Milliseconds {
    const { cells, width } = this.#rowsOf(slot);
    return width > WAKE_AT ? (cells[rowOf(slot) * width + WAKE_AT] as number) : Number.POSITIVE_INFINITY;
  }

  setWakeAt(slot: number, at: Milliseconds): void {
    const { cells, width } = this.#rowsOf(slot);
    cells[rowOf(slot) * width + WAKE_AT] = at;
  }

  #rowsOf(slot: number): Rows {
    return this.#pages.rows[pageOf(slot)] as Rows;
  }
}
