import { type Policy, type Terms, termsFor } from '../policy/policy.js';
import type { PolicyCounters } from '../telemetry/observer.js';
import type { Microseconds, MicroTokens, Milliseconds } from '../units.js';
import { BusyRow } from './busy-row.js';
import { type Filled, type Flight, NOBODY } from './errand.js';
import { horizonOf, isPlentiful, reviewAt, unusedAt } from './keeping.js';
import type { LeasePlace } from './lease-row.js';
import { addDemand, type Share } from './sizing.js';
import type { StoreClock, StoreClocks } from './store-clock.js';
import type { WakeQueue } from './wake-queue.js';
import { ledgerSuffix } from './window-call.js';

/** The policy an account draws under, shared by all its keys; replaced in place when a newer version arrives. */
export interface LeasedPolicy {
  policy: Policy;
  readonly counters: PolicyCounters;
  /** Under which name a key leaves this process: its own, or a digest of it. */
  nameOf(key: string): string;
}

/** Where accounts lie. Of one that is about nothing no more than its row: another is made of it for whoever needs one. */
export interface AccountHome {
  /** Wakes them, by their slots. */
  readonly wakes: WakeQueue<number>;
  /** Something is under way, owed or awaited: this very account stays, until it has rested. */
  keep(account: Account): void;
  rested(account: Account): void;
}

/** Where the row of an account is, and its slot at home; one without a home is on its own. */
export interface AccountPlace extends LeasePlace {
  readonly slot: number;
  readonly home: AccountHome | undefined;
}

/** What is marked of an account; its era's number comes after these. */
const MARK = { leaseCut: 1, granted: 2, lapsed: 4 } as const;
const ERA = 8;

/** After a failed call an account pauses this long for each failure in a row, and no longer; up to twice as long at random. */
export const RETRY_MS: Milliseconds = 20;
export const LONGEST_RETRY_MS: Milliseconds = 500;
/** Refunds that nobody waits for are gathered for so long: a call for each would report what is under way as spent. */
const REFUND_MS: Milliseconds = 100;

/**
 * Under which name the store keeps a bucket: where a policy shadows, apart from where it is enforced; and where its
 * ceiling is no token bucket, apart from where it is one.
 */
export function ledgerName(policy: Policy, terms: Terms): string {
  const name = terms.mode === 'shadow' ? `${policy.name}~shadow` : policy.name;
  return name + ledgerSuffix(terms.ceiling);
}

/**
 * One key's dealings with its ceiling bucket: the wallet, which callers spend from, and what the keeper must remember
 * to refill it. An account is in one of these states:
 *
 *     cold      nothing has ever been granted (`granted` is false)
 *     active    the wallet has live tokens
 *     dry       the last lease was spent; the next call is due at `blockedUntil` or is under way
 *     expired   the last lease ended with tokens in it
 *     degraded  calls fail; the policy's outage mode answers once no live tokens are left
 *
 * There may be a million: its numbers lie in a row, and what only matters while something is under way in an errand, which
 * it gives up as soon as that is done. Without one it is forgotten, all but its row.
 */
export class Account extends BusyRow implements Share {
  readonly key: string;
  readonly owner: LeasedPolicy;
  readonly slot: number;
  #home: AccountHome | undefined;
  readonly #clocks: StoreClocks;
  #name: string | undefined;
  #clock: StoreClock | undefined;
  /** The policy it draws under. Calls take version and terms from here, so that they are always of one document. */
  policy: Policy;
  terms: Terms;
  /** Where its bucket is kept. For good: a wallet must never be reported to another bucket. */
  readonly ledger: string;

  constructor(key: string, owner: LeasedPolicy, policy: Policy, clocks: StoreClocks, place: AccountPlace) {
    super(place);
    this.key = key;
    this.owner = owner;
    this.policy = policy;
    this.terms = termsFor(policy, key);
    this.ledger = ledgerName(policy, this.terms);
    this.slot = place.slot;
    this.#home = place.home;
    this.#clocks = clocks;
  }

  /** Itself: whoever has an account, or something that may have one, asks for it without a look at which it is. */
  get account(): this {
    return this;
  }

  /** Undefined: it is on its own, its key dropped or drawing from elsewhere. */
  get home(): AccountHome | undefined {
    return this.#home;
  }

  /** As the store knows it. */
  get name(): string {
    this.#name ??= this.owner.nameOf(this.key);
    return this.#name;
  }

  get clock(): StoreClock {
    this.#clock ??= this.#clocks.of(this.ledger, this.name);
    return this.#clock;
  }

  /** Its lease ends with a window, and can't be renewed before the next one. */
  declare leaseCut: boolean;
  declare granted: boolean;
  /** Lost tokens at the end of a lease since the last grant. */
  declare lapsed: boolean;

  static {
    for (const [name, mark] of Object.entries(MARK)) {
      Object.defineProperty(Account.prototype, name, {
        get(this: Account) {
          return (this.marks & mark) > 0;
        },
        set(this: Account, on: boolean) {
          this.marks = (this.marks & ~mark) | (on ? mark : 0);
        },
      });
    }
  }

  /** Whether the store has ever answered. */
  get met(): boolean {
    return this.marks >= ERA;
  }

  /** That of the store's data as of its last answer; empty: there was none. */
  get era(): string {
    return this.met ? this.clock.eraOf(Math.floor(this.marks / ERA)) : '';
  }
  set era(era: string) {
    this.marks = (this.marks % ERA) + this.clock.numberOf(era) * ERA;
  }

  protected override began(): void {
    this.#home?.keep(this);
  }

  protected override ended(): void {
    this.#home?.rested(this);
  }

  override leaveRow(): void {
    super.leaveRow();
    this.#home = undefined;
  }

  /** Under which name the store fences its terms. */
  get fence(): string {
    // `#key` of an override, which is told to nobody either.
    const override = this.terms.fence.slice(this.policy.name.length);
    return this.ledger + (override && `#${this.owner.nameOf(override.slice(1))}`);
  }

  /** Takes what was asked for since the last look into the measure of demand; it was in use if anything was. */
  measure(now: Milliseconds): void {
    if (this.attempted > 0) this.activeAt = now;
    addDemand(this, this.attempted, now);
    this.attempted = 0;
  }

  /** Comes under the policy in force now: what was said of the terms before no longer holds. */
  adopt(): void {
    this.policy = this.owner.policy;
    this.terms = termsFor(this.policy, this.key);
    this.blockedUntil = 0;
    this.unmet = 0;
  }

  /** Needs nothing any more, and only gives back. */
  retire(): void {
    this.released = true;
    this.forced = this.balance + this.refund > 0;
    this.blockedUntil = 0;
    this.lowWater = 0;
    this.waiting = 0;
    this.waitingHead = 0;
    this.missed = 0;
    this.debt = 0;
  }

  /**
   * Takes a spend back that did not come about: off what is owed; into the wallet as far as the store does not know of it
   * yet, while the lease lives, so that there is never more than the store counts on; and the rest with the next call.
   *
   * @param since store time before which none of it was spent; undefined: just now, as far as the caller knows
   */
  takeBack(amount: MicroTokens, since: Microseconds | undefined, now: Milliseconds): void {
    const forgiven = Math.min(this.debt, amount);
    const held = now < this.endsAt ? Math.min(amount - forgiven, Math.max(0, this.known - this.balance)) : 0;
    this.debt -= forgiven;
    this.balance += held;
    const rest = amount - forgiven - held;
    const burst = this.terms.ceiling?.burst ?? 0;
    if (rest === 0 || this.refund >= burst) return;
    // Of the window under way; a log, where nobody knows, takes it to be of its oldest entries.
    const from = since ?? (this.terms.ceiling?.algorithm === 'fixed-window' ? this.clock.at(now) : 0);
    this.refundSince = this.refund === 0 ? from : Math.min(this.refundSince, from);
    this.refund = Math.min(burst, this.refund + rest);
  }

  /** Has the next call fill the bucket: a refund of all that was ever spent. What is owed is forgotten. */
  fill(told: Filled): void {
    this.debt = 0;
    this.refund = this.terms.ceiling?.burst ?? 0;
    this.refundSince = 0;
    this.refills = [...this.refills, told];
    this.blockedUntil = 0;
    this.unmet = 0;
    if (this.refund === 0) this.notFilled();
  }

  /** Who wanted the bucket filled waits no more: it is not filled for nobody. */
  leaveAsItIs(told: Filled): void {
    const others = this.refills.filter((other) => other !== told);
    if (this.refills.length > 0 && others.length === 0) this.refund = 0;
    this.refills = others;
  }

  /** Tells all who wait that no call goes out for them: none can, or (without an error) none is needed. */
  notFilled(error?: Error): void {
    const { refills } = this;
    if (refills.length === 0) return;
    this.refills = NOBODY;
    this.refund = 0;
    for (const told of refills) told(error);
  }

  /** Gives a call up for good: what it may have granted is disowned, and what it carried never comes back (rule 4). */
  giveUp(flight: Flight, error: Error): void {
    this.flight = undefined;
    this.disown ||= flight.seq;
    this.forced = true;
    for (const told of flight.refills) told(error);
  }

  /** Charges what need not be there: what is in hand at once, and the rest, one burst at most, when it is granted. */
  owe(amount: MicroTokens, now: Milliseconds): void {
    this.debt = Math.min(this.terms.ceiling?.burst ?? 0, this.debt + amount);
    if (now < this.endsAt) this.payDebt();
  }

  /** Its bucket was made full: what was said of it no longer holds, and nothing is owed. */
  forgive(): void {
    this.blockedUntil = 0;
    this.unmet = 0;
    this.debt = 0;
    this.share = undefined;
  }

  /** What was charged before it was there is spent as soon as it is. */
  payDebt(): void {
    const paid = Math.min(this.debt, this.balance);
    this.balance -= paid;
    this.debt -= paid;
  }

  unused(now: Milliseconds): boolean {
    return now >= unusedAt(this);
  }

  /** The span of demand one batch is sized for. */
  get horizonMs(): Milliseconds {
    return horizonOf(this);
  }

  get plenty(): boolean {
    return isPlentiful(this);
  }

  /** Whether a call is due though nobody needs tokens: to give back, or to renew what it holds. */
  owesCall(now: Milliseconds): boolean {
    return this.refund > 0 || (this.balance > 0 && now >= reviewAt(this));
  }

  /** When it must next be looked at without being asked; Infinity: not at all. */
  lookAt(now: Milliseconds): Milliseconds {
    let at = Number.POSITIVE_INFINITY;
    if (this.lacking && this.blockedUntil > now) at = this.blockedUntil;
    if (this.disown > 0) at = Math.min(at, Math.max(this.blockedUntil, now + RETRY_MS));
    if (this.refund > 0) at = Math.min(at, now + REFUND_MS);
    if (this.balance > 0) at = Math.min(at, Math.max(now + RETRY_MS, reviewAt(this)));
    return at;
  }

  /** The one that has waited longest needs `cost`, and those who wait need no less. */
  needs(cost: MicroTokens): void {
    this.waiting = Math.max(this.waiting, cost);
    this.waitingHead = cost;
  }

  /** Whether those who wait need more than there is, or more has been charged than there was. */
  get lacking(): boolean {
    return this.waiting > this.balance || this.debt > 0;
  }

  /** Whether the store has said that asking for this much is useless for now. */
  blockedFor(cost: MicroTokens, now: Milliseconds): boolean {
    return now < this.blockedUntil && Math.max(0, cost - this.balance) >= this.unmet;
  }

  /** Nothing in hand, nothing under way, nothing owed: the key can be forgotten without a loss to anybody. */
  get idle(): boolean {
    return (
      this.balance === 0 &&
      !this.flight &&
      !this.queued &&
      this.waiting === 0 &&
      this.disown === 0 &&
      this.debt === 0 &&
      this.refund === 0 &&
      this.outageSince === 0
    );
  }
}
