import { CELL, LEASE_CELL, type Rows } from '../cells.js';
import { type AllowedWatch, NOBODY_WATCHES, type Observer } from '../telemetry/observer.js';
import type { MicroTokens, Milliseconds, Tokens } from '../units.js';
import type { PolicyState } from './policy-state.js';

// Here, so that they are constants to the compiler, which those of another module are not.
const { tokens: TOKENS, at: AT, plain: PLAIN } = CELL;
const { balance: BALANCE, endsAt: ENDS_AT, lowWater: LOW_WATER } = LEASE_CELL;
const { attempted: ATTEMPTED, blockedUntil: BLOCKED_UNTIL, unmet: UNMET } = LEASE_CELL;

/**
 * The way of a call that nothing but the cells of its key is needed for: the terms are the policy's own, its local tier
 * is a token bucket, nobody waits, and the wallet has enough and need not be renewed, or the call is certain to be denied.
 * That is what nearly all calls find, so it is written to touch little memory and make nothing; numbers are not handed to
 * other functions, as V8 boxes them unless it inlines the call. What is decided and counted is what the judge and the
 * clerk would; where they are needed, nothing is changed.
 *
 * `row` is the number of the key's row in `rows`.
 */
export class PlainPath {
  readonly #owner: PolicyState;
  readonly #observer: Observer;
  readonly #allowedWatch: AllowedWatch;
  #edition = 0;
  #hasLocal = false;
  #hasCeiling = false;
  #ratePerMs = 0;
  #burst: Tokens = 0;
  /** Whether a denial is only to be counted. */
  #denies = false;
  /** Whether there is a ceiling, and an outage changes nothing about a denial of it but its reason. */
  #outageDenies = false;

  constructor(owner: PolicyState, observer: Observer) {
    this.#owner = owner;
    this.#observer = observer;
    this.#allowedWatch = observer.allowedWatch ?? NOBODY_WATCHES;
    this.adopt();
  }

  /** Comes under the policy in force now. */
  adopt(): void {
    const { terms, outage } = this.#owner.policy;
    this.#edition = this.#owner.edition;
    this.#hasLocal = terms.local !== undefined;
    this.#hasCeiling = terms.ceiling !== undefined;
    this.#ratePerMs = terms.local?.ratePerMs ?? 0;
    this.#burst = terms.local?.burst ?? 0;
    this.#denies = terms.mode === 'enforce';
    this.#outageDenies = this.#hasCeiling && outage.mode === 'deny';
  }

  /** Charges and counts the call if every tier has enough in hand. */
  passes(rows: Rows, row: number, cost: Tokens, micro: MicroTokens, now: Milliseconds): boolean {
    const { cells } = rows;
    const first = row * rows.width;
    if (cells[first + PLAIN] !== this.#edition || this.#allowedWatch.hasSubscribers) return false;
    const { counters } = this.#owner;
    let level = 0;
    if (this.#hasLocal) {
      const elapsed = now - (cells[first + AT] as number);
      level = cells[first + TOKENS] as number;
      if (elapsed > 0) level += elapsed * this.#ratePerMs;
      if (level > this.#burst) level = this.#burst;
      if (level < cost) return false;
    }
    if (this.#hasCeiling) {
      const left = (cells[first + BALANCE] as number) - micro;
      // The mark is never below 0. And the lease is looked at whenever a token is spent (rule 5).
      if (left < (cells[first + LOW_WATER] as number) || now >= (cells[first + ENDS_AT] as number)) return false;
      cells[first + BALANCE] = left;
      cells[first + ATTEMPTED] = (cells[first + ATTEMPTED] as number) + micro;
      counters.tokensSpent += cost;
    }
    if (this.#hasLocal) {
      cells[first + TOKENS] = level - cost;
      if (now > (cells[first + AT] as number)) cells[first + AT] = now;
    }
    counters.allowed += 1;
    return true;
  }

  /** Counts a call that did not pass as denied, if that is certain and all there is to do. */
  denies(rows: Rows, row: number, cost: Tokens, micro: MicroTokens, now: Milliseconds): boolean {
    const { cells } = rows;
    const first = row * rows.width;
    if (cells[first + PLAIN] !== this.#edition || !this.#denies || this.#observer.watchesDenials()) return false;
    const { counters } = this.#owner;
    if (this.#hasLocal) {
      const elapsed = now - (cells[first + AT] as number);
      let level = cells[first + TOKENS] as number;
      if (elapsed > 0) level += elapsed * this.#ratePerMs;
      if (level > this.#burst) level = this.#burst;
      if (level < cost) {
        counters.deniedLocal += 1;
        return true;
      }
    }
    if (!this.#outageDenies || now >= (cells[first + BLOCKED_UNTIL] as number)) return false;
    const left = (cells[first + BALANCE] as number) - micro;
    if (left >= 0 && now < (cells[first + ENDS_AT] as number)) return false;
    if ((left < 0 ? -left : 0) < (cells[first + UNMET] as number)) return false;
    cells[first + ATTEMPTED] = (cells[first + ATTEMPTED] as number) + micro;
    counters.deniedCeiling += 1;
    return true;
  }
}
