import { type Policy, type Terms, termsFor } from '../policy/policy.js';
import type { PolicyCounters } from '../telemetry/observer.js';
import type { Microseconds, MicroTokens, Milliseconds } from '../units.js';
import { Errand, type Filled, type Flight, NO_ERRAND, NOBODY } from './errand.js';
import { horizonOf, isPlentiful, reviewAt, unusedAt } from './keeping.js';
import { type LeasePlace, LeaseRow } from './lease-row.js';
import type { ShareBucket } from './share-bucket.js';
import { addDemand, type Share } from './sizing.js';
import type { StoreClock, StoreClocks } from './store-clock.js';
import { ledgerSuffix } from './window-call.js';

/** The policy an account draws under, shared by all its keys; replaced in place when a newer version arrives. */
export interface LeasedPolicy {
  policy: Policy;
  readonly counters: PolicyCounters;
  /** Under which name a key leaves this process: its own, or a digest of it. */
  nameOf(key: string): string;
}

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
 * it gives up as soon as that is done.
 */
export class Account extends LeaseRow implements Share {
  readonly key: string;
  /** As the store knows it. */
  readonly name: string;
  readonly owner: LeasedPolicy;
  readonly clock: StoreClock;
  /** The policy it draws under. Calls take version and terms from here, so that they are always of one document. */
  policy: Policy;
  terms: Terms;
  /** Where its bucket is kept. For good: a wallet must never be reported to another bucket. */
  readonly ledger: string;

  #errand = NO_ERRAND;
  /** Its lease ends with a window, and can't be renewed before the next one. */
  leaseCut = false;
  granted = false;
  /** Lost tokens at the end of a lease since the last grant. */
  lapsed = false;
  era = '';

  constructor(key: string, owner: LeasedPolicy, clocks: StoreClocks, place: LeasePlace, now: Milliseconds) {
    super(place, now);
    this.key = key;
    this.name = owner.nameOf(key);
    this.owner = owner;
    this.policy = owner.policy;
    this.terms = termsFor(owner.policy, key);
    this.ledger = ledgerName(this.policy, this.terms);
    this.clock = clocks.of(this.ledger, this.name);
  }

  /** Itself: whoever has an account, or something that may have one, asks for it without a look at which it is. */
  get account(): this {
    return this;
  }

  get flight(): Flight | undefined {
    return this.#errand.flight;
  }
  set flight(flight: Flight | undefined) {
    if (flight !== this.#errand.flight) this.#busy().flight = flight;
  }

  /** Whether it is in the list of this tick. */
  get queued(): boolean {
    return this.#errand.queued;
  }
  set queued(queued: boolean) {
    if (queued !== this.#errand.queued) this.#busy().queued = queued;
  }

  /** A call is wanted though nobody needs tokens: to report, to return, to register. */
  get forced(): boolean {
    return this.#errand.forced;
  }
  set forced(forced: boolean) {
    if (forced !== this.#errand.forced) this.#busy().forced = forced;
  }

  /** Its key has no more use for it: what it holds goes back, and nothing is asked for. */
  get released(): boolean {
    return this.#errand.released;
  }
  set released(released: boolean) {
    if (released !== this.#errand.released) this.#busy().released = released;
  }

  /** A reply asked to return what can be spared. */
  get giveBack(): boolean {
    return this.#errand.giveBack;
  }
  set giveBack(giveBack: boolean) {
    if (giveBack !== this.#errand.giveBack) this.#busy().giveBack = giveBack;
  }

  /** Charged without having been there: paid out of what is granted next. */
  get debt(): MicroTokens {
    return this.#errand.debt;
  }
  set debt(debt: MicroTokens) {
    if (debt !== this.#errand.debt) this.#busy().debt = debt;
  }

  /** Spent as far as the store knows, and to be given back by it; nothing of it was spent before `refundSince` there. */
  get refund(): MicroTokens {
    return this.#errand.refund;
  }
  set refund(refund: MicroTokens) {
    if (refund !== this.#errand.refund) this.#busy().refund = refund;
  }

  get refundSince(): Microseconds {
    return this.#errand.refundSince;
  }
  set refundSince(refundSince: Microseconds) {
    if (refundSince !== this.#errand.refundSince) this.#busy().refundSince = refundSince;
  }

  /** Whom to tell when that has filled the bucket. */
  get refills(): readonly Filled[] {
    return this.#errand.refills;
  }
  set refills(refills: readonly Filled[]) {
    if (refills !== this.#errand.refills) this.#busy().refills = refills;
  }

  /** Costs of all waiting callers together, and of the first; what a caller that does not wait missed. */
  get waiting(): MicroTokens {
    return this.#errand.waiting;
  }
  set waiting(waiting: MicroTokens) {
    if (waiting !== this.#errand.waiting) this.#busy().waiting = waiting;
  }

  get waitingHead(): MicroTokens {
    return this.#errand.waitingHead;
  }
  set waitingHead(waitingHead: MicroTokens) {
    if (waitingHead !== this.#errand.waitingHead) this.#busy().waitingHead = waitingHead;
  }

  get missed(): MicroTokens {
    return this.#errand.missed;
  }
  set missed(missed: MicroTokens) {
    if (missed !== this.#errand.missed) this.#busy().missed = missed;
  }

  /** Lowest seq given up since the last reply taken; 0: none. */
  get disown(): number {
    return this.#errand.disown;
  }
  set disown(disown: number) {
    if (disown !== this.#errand.disown) this.#busy().disown = disown;
  }

  /** Calls that failed in a row. */
  get failures(): number {
    return this.#errand.failures;
  }
  set failures(failures: number) {
    if (failures !== this.#errand.failures) this.#busy().failures = failures;
  }

  /** Store time of the last reply before the outage in which the share mode answered; 0: none to pay for. */
  get outageSince(): Microseconds {
    return this.#errand.outageSince;
  }
  set outageSince(outageSince: Microseconds) {
    if (outageSince !== this.#errand.outageSince) this.#busy().outageSince = outageSince;
  }

  /** In an outage with the mode `share`: what this instance may admit by itself. */
  get share(): ShareBucket | undefined {
    return this.#errand.share;
  }
  set share(share: ShareBucket | undefined) {
    if (share !== this.#errand.share) this.#busy().share = share;
  }

  /** Gives up its errand, if that is done. */
  rest(): void {
    if (this.#errand !== NO_ERRAND && this.#errand.done) this.#errand = NO_ERRAND;
  }

  #busy(): Errand {
    if (this.#errand === NO_ERRAND) this.#errand = new Errand();
    return this.#errand;
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
