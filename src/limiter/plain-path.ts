import { CELL, LEASE_CELL, type Rows } from '../cells.js';
import type { Account } from '../lease/account.js';
import type { Keeper } from '../lease/keeper.js';
import { type AllowedWatch, NOBODY_WATCHES, type Observer, type PolicyCounters } from '../telemetry/observer.js';
import type { Time } from '../time.js';
import { MICRO, type MicroTokens, type Milliseconds, type Tokens } from '../units.js';
import type { Allowed } from './decision.js';
import type { KeptAccounts } from './kept-accounts.js';
import { type KeyPages, pageOf, rowOf } from './key-pages.js';
import type { PolicyState } from './policy-state.js';

// Here, so that they are constants to the compiler, which those of another module are not.
const { tokens: TOKENS, at: AT, plain: PLAIN } = CELL;
const { balance: BALANCE, endsAt: ENDS_AT, lowWater: LOW_WATER } = LEASE_CELL;
const { attempted: ATTEMPTED, blockedUntil: BLOCKED_UNTIL, unmet: UNMET } = LEASE_CELL;

/** What the cells of a key say of a call. */
export const PLAINLY = {
  /** It takes a closer look. */
  unsure: 0,
  /** It passes, and has been charged and counted. */
  allowed: 1,
  /** It is denied; nothing has been written down. */
  localEmpty: 2,
  blocked: 3,
} as const;

export type Plainly = (typeof PLAINLY)[keyof typeof PLAINLY];
type PlainDenial = Exclude<Plainly, typeof UNSURE | typeof ALLOWED>;

/** No row of a page begins after this. V8 need not look whether the number of a cell is too large for an integer then. */
const LARGEST_FIRST = 0x3fff;

const { unsure: UNSURE, allowed: ALLOWED, localEmpty: LOCAL_EMPTY, blocked: BLOCKED } = PLAINLY;

/** What a path is made of. */
export interface PlainPathParts {
  readonly owner: PolicyState;
  readonly keeper: Keeper;
  readonly observer: Observer;
  readonly time: Time;
  readonly pages: KeyPages;
  readonly accounts: KeptAccounts;
}

/**
 * The way of a call that nothing but the cells of its key is needed for: the terms are the policy's own, its local tier
 * is a token bucket, nobody waits, and the wallet has enough and need not be renewed, or the call is certain to be denied.
 * That is what nearly all calls find, so it is written to touch little memory and make nothing: it has what it needs in
 * its own fields, the time among them, as V8 boxes a number with a fraction that is handed to another function unless
 * it inlines the call. What is decided and counted is what the judge and the clerk would; where they are needed, nothing is
 * changed.
 */
export class PlainPath {
  readonly #owner: PolicyState;
  readonly #keeper: Keeper;
  readonly #observer: Observer;
  readonly #allowedWatch: AllowedWatch;
  readonly #time: Time;
  readonly #accounts: KeptAccounts;
  readonly #pages: KeyPages;
  readonly #looksInside: boolean;
  readonly #rows: readonly Rows[];
  readonly #counters: PolicyCounters;
  #lastNow: Milliseconds = Number.NEGATIVE_INFINITY;
  #edition = 0;
  #hasLocal = false;
  #hasCeiling = false;
  #ratePerMs = 0;
  #burst: Tokens = 0;
  /** Whether a denial is only to be counted. */
  #denies = false;
  /** Whether there is a ceiling, and an outage changes nothing about a denial of it but its reason. */
  #outageDenies = false;
  #policy = '';
  #version = 0;
  /** Of the ceiling. */
  #microPerMs = 0;
  #microBurst: MicroTokens = 0;
  /** Most that could ever be there at once, of all tiers. */
  #limit: Tokens = 0;
  // Of the call that was allowed last, until it is told.
  #remaining: Tokens = 0;
  #resetAfterMs: Milliseconds | undefined;
  #degraded = false;

  constructor({ owner, keeper, observer, time, pages, accounts }: PlainPathParts) {
    this.#owner = owner;
    this.#keeper = keeper;
    this.#counters = owner.counters;
    this.#observer = observer;
    this.#allowedWatch = observer.allowedWatch ?? NOBODY_WATCHES;
    this.#time = time;
    this.#accounts = accounts;
    this.#pages = pages;
    this.#looksInside = keeper.looksInside;
    this.#rows = pages.rows;
    this.adopt();
  }

  /** Comes under the policy in force now. */
  adopt(): void {
    const { name, version, terms, outage } = this.#owner.policy;
    const { local, ceiling, mode } = terms;
    this.#edition = this.#owner.edition;
    this.#hasLocal = local !== undefined;
    this.#hasCeiling = ceiling !== undefined;
    this.#ratePerMs = local?.ratePerMs ?? 0;
    this.#burst = local?.burst ?? Number.POSITIVE_INFINITY;
    this.#denies = mode === 'enforce';
    this.#outageDenies = outage.mode === 'deny';
    this.#policy = name;
    this.#version = version;
    this.#microPerMs = ceiling ? (ceiling.rateNum / ceiling.rateDen) * 1_000 : 0;
    this.#microBurst = ceiling?.burst ?? 0;
    this.#limit = Math.min(this.#burst, (ceiling?.burst ?? Number.POSITIVE_INFINITY) / MICRO);
  }

  /** The clock, held where it is should it ever go back: no bucket is paid twice for the same time. */
  now(): Milliseconds {
    const now = this.#time.now();
    if (now < this.#lastNow) return this.#lastNow;
    this.#lastNow = now;
    return now;
  }

  /**
   * Charges and counts a call for the key in `slot`, for which the clock was read last, if every tier has enough in hand. Who
   * asks reads it before the key is looked up: a processor then waits for memory while it reads, and not before.
   */
  settle(slot: number, cost: Tokens, micro: MicroTokens): Plainly {
    const { cells, width } = this.#rows[pageOf(slot)] as Rows;
    const first = (rowOf(slot) * width) & LARGEST_FIRST;
    const now = this.#lastNow;
    if (cells[first + PLAIN] !== this.#edition || this.#allowedWatch.hasSubscribers) return UNSURE;
    let level = 0;
    if (this.#hasLocal === true) {
      const elapsed = now - (cells[first + AT] as number);
      level = cells[first + TOKENS] as number;
      if (elapsed > 0) level += elapsed * this.#ratePerMs;
      if (level > this.#burst) level = this.#burst;
      if (level < cost) return LOCAL_EMPTY;
    }
    if (this.#hasCeiling === true) {
      const left = (cells[first + BALANCE] as number) - micro;
      // The mark is never below 0. And the lease is looked at whenever a token is spent (rule 5).
      if (left < (cells[first + LOW_WATER] as number) || now >= (cells[first + ENDS_AT] as number)) {
        if (now >= (cells[first + BLOCKED_UNTIL] as number)) return UNSURE;
        if (left >= 0 && now < (cells[first + ENDS_AT] as number)) return UNSURE;
        return (left < 0 ? -left : 0) < (cells[first + UNMET] as number) ? UNSURE : BLOCKED;
      }
      cells[first + BALANCE] = left;
      cells[first + ATTEMPTED] = (cells[first + ATTEMPTED] as number) + micro;
      this.#counters.tokensSpent += cost;
    }
    if (this.#hasLocal === true) {
      cells[first + TOKENS] = level - cost;
      if (now > (cells[first + AT] as number)) cells[first + AT] = now;
    }
    this.#counters.allowed += 1;
    return ALLOWED;
  }

  /** Counts a call that was not allowed as denied, if that is all there is to do. */
  denies(plainly: PlainDenial, slot: number, micro: MicroTokens): boolean {
    if (!this.#denies || this.#observer.watchesDenials()) return false;
    if (plainly === LOCAL_EMPTY) {
      this.#counters.deniedLocal += 1;
      return true;
    }
    if (!this.#outageDenies) return false;
    const { cells, width } = this.#rows[pageOf(slot)] as Rows;
    const first = rowOf(slot) * width;
    cells[first + ATTEMPTED] = (cells[first + ATTEMPTED] as number) + micro;
    this.#counters.deniedCeiling += 1;
    return true;
  }

  /** As {@link settle}, and works out what an allowed call is {@link told}; `false`: it takes a closer look. */
  allows(slot: number, cost: Tokens, micro: MicroTokens): boolean {
    if (this.settle(slot, cost, micro) !== ALLOWED) return false;
    const { cells, width } = this.#rows[pageOf(slot)] as Rows;
    const first = rowOf(slot) * width;
    let remaining = this.#hasLocal === true ? (cells[first + TOKENS] as number) : Number.POSITIVE_INFINITY;
    // Not a number where there is no local tier: then it is not more than 0.
    const missing = this.#burst - remaining;
    let left: MicroTokens | undefined = 0;
    let missingMicro = 0;
    this.#degraded = false;
    if (this.#hasCeiling === true) {
      let held = cells[first + BALANCE] as number;
      if (!this.#looksInside && typeof this.#pages.at(slot) === 'string') {
        // It rests, so it owes nothing, and its store is not in this process, where more could be seen than its row.
        this.#degraded = this.#keeper.degraded;
        left = undefined;
      } else {
        const account = this.#accounts.at(slot) as Account;
        this.#degraded = this.#keeper.unreachable(account);
        left = this.#keeper.leftNow(account);
        held += (left ?? 0) - account.debt;
      }
      missingMicro = this.#microBurst - held;
      remaining = Math.min(remaining, held / MICRO);
    }
    this.#remaining = Math.max(0, Math.floor(remaining));
    if (left === undefined) this.#resetAfterMs = undefined;
    else {
      const freshMs = missing > 0 ? Math.max(1, Math.ceil(missing / this.#ratePerMs)) : 0;
      this.#resetAfterMs = this.#hasCeiling ? Math.max(freshMs, Math.ceil(missingMicro / this.#microPerMs)) : freshMs;
    }
    return true;
  }

  /**
   * What the call is told that {@link allows} has just let pass. Apart from it and short, so that V8 makes the decision where
   * it is promised: it then knows that it is no promise itself, and does not look.
   */
  told(): Allowed {
    return {
      allowed: true,
      policy: this.#policy,
      policyVersion: this.#version,
      remaining: this.#remaining,
      limit: this.#limit,
      resetAfterMs: this.#resetAfterMs,
      degraded: this.#degraded,
    };
  }
}
