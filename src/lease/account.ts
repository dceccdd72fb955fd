import { CELL, CELLS_A_KEY } from '../cells.js';
import { type Policy, type Terms, termsFor } from '../policy/policy.js';
import type { PolicyCounters } from '../telemetry/observer.js';
import type { Microseconds, MicroTokens, Milliseconds } from '../units.js';
import { horizonOf, reviewAt, unusedAt } from './keeping.js';
import { Demand, type Share } from './sizing.js';
import type { StoreClock } from './store-clock.js';
import type { Sleeper } from './wake-queue.js';
import type { Wallet } from './wallet.js';
import { ledgerSuffix } from './window-call.js';

// Here, so that they are constants to the compiler, which those of another module are not.
const { balance: BALANCE, endsAt: ENDS_AT, lowWater: LOW_WATER, attempted: ATTEMPTED } = CELL;
const { blockedUntil: BLOCKED_UNTIL, unmet: UNMET, activeAt: ACTIVE_AT } = CELL;

/** The policy an account draws under, shared by all its keys; replaced in place when a newer version arrives. */
export interface LeasedPolicy {
  policy: Policy;
  readonly counters: PolicyCounters;
}

/** Told once how it went with the bucket that was to be filled. */
export type Filled = (error?: Error) => void;

/** Nobody wants to be told. */
export const NOBODY: readonly Filled[] = Object.freeze([]);

/** After a failed call an account pauses this long for each failure in a row, up to twice as long at random. */
export const RETRY_MS: Milliseconds = 20;
/** Refunds that nobody waits for are gathered for so long: a call for each would report what is under way as spent. */
const REFUND_MS: Milliseconds = 100;

/** A call that has been sent and neither answered nor given up. */
export interface Flight {
  readonly seq: number;
  readonly sentAt: Milliseconds;
  readonly leaseMs: Milliseconds;
  readonly returned: MicroTokens;
  readonly refund: MicroTokens;
  /** Told whether it filled the bucket. */
  readonly refills: readonly Filled[];
  /** What the first of those who need tokens lacked. */
  readonly head: MicroTokens;
  /** The outage it pays for; 0: none. */
  readonly since: Microseconds;
  /** Told once, when the call is answered, given up or void. */
  settle: () => void;
}

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
 */
export class Account implements Wallet, Sleeper, Share {
  readonly key: string;
  readonly owner: LeasedPolicy;
  readonly clock: StoreClock;
  /** The policy it draws under. Calls take version and terms from here, so that they are always of one document. */
  policy: Policy;
  terms: Terms;
  /** Where its bucket is kept. For good: a wallet must never be reported to another bucket. */
  readonly ledger: string;

  #cells: Float64Array;
  #first: number;
  /** What the store takes this holder to hold, or less: the balance can come back up to this without anybody's leave. */
  known: MicroTokens = 0;
  /** Charged without having been there: paid out of what is granted next. */
  debt: MicroTokens = 0;
  /** Spent as far as the store knows, and to be given back by it; nothing of it was spent before `refundSince` there. */
  refund: MicroTokens = 0;
  refundSince: Microseconds = 0;
  /** Whom to tell when that has filled the bucket. */
  refills: readonly Filled[] = NOBODY;
  /** Until then the store is certain to have a record of this holder, without which it believes no refund. */
  recordUntil: Milliseconds = Number.NEGATIVE_INFINITY;
  /** Costs of all waiting callers together, and of the first; what a caller that does not wait missed. */
  waiting: MicroTokens = 0;
  waitingHead: MicroTokens = 0;
  missed: MicroTokens = 0;

  readonly demand: Demand;
  level = 0;
  /** The span of demand to hold ready, as the last reply said. */
  toldHorizonMs: Milliseconds = 0;
  /** When the unmet need could be met at the earliest, as the last reply said. */
  retryAt: Milliseconds = 0;
  flight: Flight | undefined;
  /** Whether it is in the list of this tick. */
  queued = false;
  /** A call is wanted though nobody needs tokens: to report, to return, to register. */
  forced = false;
  /** Its key has no more use for it: what it holds goes back, and nothing is asked for. */
  released = false;
  /** Its lease ends with a window, and can't be renewed before the next one. */
  leaseCut = false;
  /** A reply asked to return what can be spared. */
  giveBack = false;
  /** Lowest seq given up since the last reply taken; 0: none. */
  disown = 0;
  /** Calls that failed in a row. */
  failures = 0;
  granted = false;
  /** Lost tokens at the end of a lease since the last grant. */
  lapsed = false;

  era = '';
  incarnation: Microseconds = 0;
  certainUntil: Microseconds = 0;
  /** Taken from this incarnation of the bucket, net. */
  taken: MicroTokens = 0;
  /** Store time of the last reply before the outage in which the share mode answered; 0: none to pay for. */
  outageSince: Microseconds = 0;

  wakeAt: Milliseconds = Number.POSITIVE_INFINITY;
  wakeSlot = 0;

  /** @param first where the row of its key begins in `cells` */
  constructor(
    key: string,
    owner: LeasedPolicy,
    clock: StoreClock,
    cells: Float64Array,
    first: number,
    now: Milliseconds,
  ) {
    this.key = key;
    this.#cells = cells;
    this.#first = first;
    this.balance = 0;
    this.endsAt = Number.NEGATIVE_INFINITY;
    this.lowWater = 0;
    this.attempted = 0;
    this.blockedUntil = 0;
    this.unmet = 0;
    this.activeAt = now;
    this.owner = owner;
    this.policy = owner.policy;
    this.terms = termsFor(owner.policy, key);
    this.ledger = ledgerName(this.policy, this.terms);
    this.clock = clock;
    this.demand = new Demand(now);
  }

  get balance(): MicroTokens {
    return this.#cells[this.#first + BALANCE] as number;
  }
  set balance(balance: MicroTokens) {
    this.#cells[this.#first + BALANCE] = balance;
  }

  get endsAt(): Milliseconds {
    return this.#cells[this.#first + ENDS_AT] as number;
  }
  set endsAt(endsAt: Milliseconds) {
    this.#cells[this.#first + ENDS_AT] = endsAt;
  }

  /** Callers ask the keeper to renew once the balance is below this. */
  get lowWater(): MicroTokens {
    return this.#cells[this.#first + LOW_WATER] as number;
  }
  set lowWater(lowWater: MicroTokens) {
    this.#cells[this.#first + LOW_WATER] = lowWater;
  }

  /** Asked for since demand was last measured. */
  get attempted(): MicroTokens {
    return this.#cells[this.#first + ATTEMPTED] as number;
  }
  set attempted(attempted: MicroTokens) {
    this.#cells[this.#first + ATTEMPTED] = attempted;
  }

  /** Asking before this is useless; 0: ask whenever there is need. */
  get blockedUntil(): Milliseconds {
    return this.#cells[this.#first + BLOCKED_UNTIL] as number;
  }
  set blockedUntil(blockedUntil: Milliseconds) {
    this.#cells[this.#first + BLOCKED_UNTIL] = blockedUntil;
  }

  /**
   * The need that was not met, and that `blockedUntil` and `retryAt` speak of; less than it may be there. 0: they hold
   * for any need.
   */
  get unmet(): MicroTokens {
    return this.#cells[this.#first + UNMET] as number;
  }
  set unmet(unmet: MicroTokens) {
    this.#cells[this.#first + UNMET] = unmet;
  }

  /** When it was last seen to be in use. */
  get activeAt(): Milliseconds {
    return this.#cells[this.#first + ACTIVE_AT] as number;
  }
  set activeAt(activeAt: Milliseconds) {
    this.#cells[this.#first + ACTIVE_AT] = activeAt;
  }

  /** Takes its numbers with it: the row of its key is another's from now on. */
  leaveRow(): void {
    this.#cells = this.#cells.slice(this.#first, this.#first + CELLS_A_KEY);
    this.#first = 0;
  }

  /** Under which name the store fences its terms. */
  get fence(): string {
    return this.ledger + this.terms.fence.slice(this.policy.name.length);
  }

  /** Takes what was asked for since the last look into the measure of demand; it was in use if anything was. */
  measure(now: Milliseconds): void {
    if (this.attempted > 0) this.activeAt = now;
    this.demand.add(this.attempted, now);
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
