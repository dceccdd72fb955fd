import type { LeaseCall, LeaseReply } from '../ceiling/ceiling-store.js';
import { CeilingError } from '../errors.js';
import type { Random } from '../time.js';
import { MICRO, type Microseconds, type MicroTokens, type Milliseconds } from '../units.js';
import { type Account, type LeasedPolicy, LONGEST_RETRY_MS, RETRY_MS } from './account.js';
import { AccountWakes } from './account-wakes.js';
import { Breaker } from './breaker.js';
import { composeCall } from './call.js';
import { Courier, type CourierParts } from './courier.js';
import type { Flight } from './errand.js';
import type { Fleet } from './fleet.js';
import { type GrantTerms, isLargeAndSpent, takeGrant } from './grant.js';
import { leftNow } from './left-now.js';
import { refill } from './refill.js';
import { StoreClocks } from './store-clock.js';
import { SuspendWatch } from './suspend-watch.js';
import { Tick } from './tick.js';
import { expire } from './wallet.js';

/** What the keeper is made of. */
export interface KeeperParts extends Omit<CourierParts, 'landed' | 'lost'> {
  readonly random: Random;
  /** Random identity of this limiter object at the store; new for each, set by no option (rule 3). */
  readonly holder: string;
  /** Counts who is alive; left out where the store is in this process, which can't be out of reach. */
  readonly Fleet: typeof Fleet | undefined;
  readonly group: string;
  readonly weight: number;
  /** All accounts there are, or those that do not rest; asked only when something befell them all. */
  readonly accounts: (busyOnly?: boolean) => Iterable<Account>;
  /** Told when an account was answered, or can't be: its waiting callers may now be served or refused. */
  readonly settled: (account: Account) => void;
  /** Told when the store knows newer terms than this instance. */
  readonly outdated: (owner: LeasedPolicy) => void;
}

/**
 * The bottom half: everything that talks to the ceiling store. Callers only ever touch accounts in memory and leave
 * word here; all accounts that want something in one tick go out together, one call in flight for each (rule 2), each
 * with a deadline after which it is given up for good (rule 4).
 */
export class Keeper {
  readonly #parts: KeeperParts;
  readonly #breaker: Breaker;
  readonly #courier: Courier;
  readonly wakes: AccountWakes;
  readonly #suspend: SuspendWatch;
  readonly #fleet: Fleet | undefined;
  readonly clocks = new StoreClocks();
  readonly #tick: Tick;
  #seq = 0;
  #roundTripMs: Milliseconds = 1;
  #closing = false;

  constructor(parts: KeeperParts) {
    this.#parts = parts;
    this.#breaker = new Breaker(parts.random, parts.deadlineMs);
    this.#courier = new Courier({
      ...parts,
      landed: (account, flight, reply) => this.#landed(account, flight, reply),
      lost: (account, flight, error) => this.#giveUp(account, flight, error),
    });
    this.#tick = new Tick(parts.time, () => this.#flush());
    this.wakes = new AccountWakes(parts.time, (account, now) => this.#woken(account, now));
    this.#suspend = new SuspendWatch(parts.time);
    const answered = (): void => void (this.#breaker.open && this.#recovered(parts.time.now()));
    this.#fleet = parts.Fleet && new parts.Fleet({ ...parts, answered });
  }

  /** Starts saying that this limiter is alive: once there is a ceiling to be shared. */
  start(): void {
    this.#fleet?.start();
  }

  /** Whether this account can't get tokens now: its store, or its part of it, does not answer. */
  unreachable(account: Account): boolean {
    return this.#breaker.open || account.failures >= 2;
  }

  get degraded(): boolean {
    return this.#breaker.open;
  }

  /** When the store was lost; `now` where only a part of it is. */
  unreachableSince(now: Milliseconds): Milliseconds {
    return this.#breaker.openSince ?? now;
  }

  /** Whole milliseconds until the next attempt to reach the store for this account. */
  probeWait(account: Account, now: Milliseconds): Milliseconds {
    const probeAt = this.#breaker.open ? this.#breaker.probeAt : 0;
    return Math.max(1, Math.ceil(Math.max(probeAt, account.blockedUntil) - now));
  }

  /** Largest size of this limiter's group in the last ten minutes; 0 while it was never learnt. */
  get fleetSize(): number {
    return this.#fleet?.size ?? 0;
  }

  /** Asks for a call in this tick, if one is useful now; from the decision path, so cheap where it is not. */
  renew(account: Account, now: Milliseconds): void {
    if (now >= account.blockedUntil) this.#tick.add(account);
  }

  /** A caller that does not wait found too little: fetch for the next one that comes. */
  missed(account: Account, cost: MicroTokens, now: Milliseconds): void {
    // What can't be had now is not asked for, or a smaller cost that could be had would be asked for with it.
    if (this.#parts.store.leaseNow || account.blockedFor(cost, now)) return;
    account.missed = Math.max(account.missed, cost);
    if (this.#mayAsk(account, cost, now)) this.#tick.add(account);
  }

  /** Fetches at once where that can be: answers whether `cost` is there now. `counted`: those who wait need it. */
  fetchNow(account: Account, cost: MicroTokens, counted: boolean, now: Milliseconds): boolean {
    if (!this.#parts.store.leaseNow || !this.#breaker.admits(now) || !this.#mayAsk(account, cost, now)) return false;
    // The first of those who wait: others may have left, or been held back by the local tier, since that was noted.
    if (counted) account.needs(cost);
    else account.missed = Math.max(account.missed, cost);
    const call = this.#prepare(account, now);
    if (call) this.#courier.sendNow(call, account);
    account.missed = 0;
    if (account.balance < cost || now >= account.endsAt) return false;
    // Spent at once, and told within this turn: what the store takes to be unspent keeps the bucket from filling up.
    account.forced = true;
    this.#tick.add(account);
    return true;
  }

  /** A call though nobody waits for it, such as for what is owed: at once where the store is in this process. */
  collect(account: Account, now: Milliseconds): void {
    account.forced = true;
    const call = this.#parts.store.leaseNow && this.#prepare(account, now);
    if (call) this.#courier.sendNow(call, account);
    else this.#tick.add(account);
  }

  /** Takes back what did not come about, as {@link Account.takeBack} says; what is left of it through the store, soon. */
  refund(account: Account, amount: MicroTokens, since: Microseconds | undefined, now: Milliseconds): void {
    account.takeBack(amount, since, now);
    if (account.refund > 0) this.#schedule(account, now);
  }

  /** Gives that back at once where somebody waits, or the store is in this process: with a call that makes it known, and one. */
  refundNow(account: Account, now: Milliseconds): void {
    for (let i = 0; this.#parts.store.leaseNow && account.refund > 0 && i < 2; i++) this.collect(account, now);
    if (account.refund > 0 && (account.lacking || account.refills.length > 0)) this.collect(account, now);
  }

  /**
   * Fills the account's bucket at the store, T ← B − O, and resolves once it has said so. Wallets stay as they are; what is
   * owed here is forgotten.
   *
   * @throws {CeilingError} where the store does not answer within the call deadline; it may have been filled all the same
   */
  refill(account: Account): Promise<void> {
    const { time, deadlineMs } = this.#parts;
    return refill(account, time, deadlineMs, () => this.refundNow(account, time.now()));
  }

  /** Whether the store, in this process, can be looked at. */
  get looksInside(): boolean {
    return this.#parts.store.leftNow !== undefined;
  }

  /** What would be granted now on top of what is held; undefined: only the store knows. Introduces a bucket first. */
  leftNow(account: Account): MicroTokens | undefined {
    const { store, holder, time } = this.#parts;
    if (!this.looksInside) return undefined;
    if (!account.met && store.leaseNow) this.collect(account, time.now());
    return leftNow(store, holder, account);
  }

  /** Waiting callers have come or gone: wake the account when a call for them is useful. */
  waitersChanged(account: Account, now: Milliseconds): void {
    this.#expire(account, now);
    if (account.waiting <= account.balance) return;
    const blockedUntil = account.blockedFor(account.waitingHead, now) ? account.blockedUntil : 0;
    const from = Math.max(blockedUntil, this.#breaker.open ? this.#breaker.probeAt : 0);
    if (now < from) this.wakes.wakeBy(account, from);
    else if (this.#mayAsk(account, account.waitingHead, now)) this.#tick.add(account);
  }

  /** Asks for a call though nobody needs tokens: terms have changed, or all should be given back. */
  reconcile(account: Account): void {
    account.adopt();
    if (account.balance + account.refund === 0) return;
    account.forced = true;
    this.#tick.add(account);
  }

  /** The account's key draws from elsewhere now: what this one holds, or is yet to be granted, goes back. */
  release(account: Account, now: Milliseconds): void {
    this.#expire(account, now);
    account.retire();
    this.forget(account);
    if (account.forced) this.#tick.add(account);
  }

  /** Lets go of an account that is being forgotten. */
  forget(account: Account): void {
    this.wakes.forget(account);
    account.leaveRow();
  }

  /** Gives everything back, waiting for answers no longer than one deadline, and stops. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#fleet?.close();
    for (const account of this.#parts.accounts()) this.reconcile(account);
    // Twice: what was in flight when closing began can only be given back after it has landed.
    for (let round = 0; round < 2; round++) {
      this.#flush();
      await this.#courier.allHome();
    }
    this.wakes.close();
    this.#tick.take();
  }

  #mayAsk(account: Account, cost: MicroTokens, now: Milliseconds): boolean {
    if (account.flight || account.blockedFor(cost, now)) return false;
    account.blockedUntil = Math.min(account.blockedUntil, now);
    return true;
  }

  #flush(): void {
    const accounts = this.#tick.take();
    const now = this.#parts.time.now();
    this.#noticeSuspend(now);
    const calls: LeaseCall[] = [];
    const callers: Account[] = [];
    for (const account of accounts) {
      account.queued = false;
      const call = this.#prepare(account, now);
      if (!call) continue;
      calls.push(call);
      callers.push(account);
    }
    if (calls.length > 0) this.#courier.send(calls, callers, now);
  }

  /** The call this account should make now, its flight begun; or none, and it will be woken or asked again. */
  #prepare(account: Account, now: Milliseconds): LeaseCall | undefined {
    if (account.flight) return undefined;
    this.#expire(account, now);
    if (!this.#parts.store.ready) {
      this.#fail(new CeilingError('The ceiling store is not connected.'), true, now);
      // That was the probe: whoever waits looks again after the pause, and not at once.
      if (this.#breaker.admits(now)) this.#breaker.sent(now);
    }
    if (now < account.blockedUntil && !account.forced) {
      this.#schedule(account, now);
      return undefined;
    }
    if (!this.#parts.store.ready || !this.#breaker.admits(now)) {
      // Whoever needs tokens later asks again; only what is owed is remembered.
      account.missed = 0;
      account.notFilled(new CeilingError('The ceiling store is out of reach.'));
      if (account.disown > 0 || account.refund > 0 || account.balance > 0)
        this.wakes.wakeBy(account, now + LONGEST_RETRY_MS);
      this.#parts.settled(account);
      return undefined;
    }
    const composed = composeCall(account, this.#parts, this.#seq + 1, now, this.#closing || account.released);
    if (!composed) {
      this.#schedule(account, now);
      return undefined;
    }
    this.#seq += 1;
    this.#breaker.sent(now);
    account.flight = composed.flight;
    account.forced = false;
    account.owner.counters.leaseCalls += 1;
    account.owner.counters.tokensReturned += composed.flight.returned / MICRO;
    return composed.call;
  }

  #landed(account: Account, flight: Flight, reply: LeaseReply): void {
    const now = this.#parts.time.now();
    // A call that was under way while the machine slept is void like all leases: its own may have ended unnoticed.
    this.#noticeSuspend(now);
    if (account.flight !== flight) return;
    this.#roundTripMs += (now - flight.sentAt - this.#roundTripMs) * 0.1;
    this.#take(account, flight, reply, now);
  }

  #take(account: Account, flight: Flight, reply: LeaseReply, now: Milliseconds): void {
    account.flight = undefined;
    account.failures = 0;
    account.clock.observe(reply.now, now);
    if (reply.version > account.owner.policy.version) this.#parts.outdated(account.owner);
    if (reply.status === 'granted') {
      takeGrant(account, flight, reply, now, this.#terms());
      for (const told of flight.refills) told();
      // Not with this one: the store had no record of this holder, or it came since.
      if (account.refills.length > 0 || (account.refund > 0 && flight.refund === 0)) account.forced = true;
    } else {
      // Not executed: what it carried stays out of the wallet, and the fresh store time lets the next one through.
      account.giveUp(flight, new CeilingError('The ceiling store refused the call.'));
      account.owner.counters.leaseRefusals += 1;
    }
    if (this.#breaker.open) this.#recovered(now);
    else this.#breaker.succeeded();
    if (reply.era !== account.era) this.#newEra(account, reply.era);
    if ((account.released || this.#closing) && account.balance + account.refund > 0) account.forced = true;
    this.#parts.settled(account);
    if (reply.status === 'granted' && isLargeAndSpent(account, reply)) account.forced = true;
    if (account.forced || (account.lacking && now >= account.blockedUntil)) this.#tick.add(account);
    this.#schedule(account, now);
    flight.settle();
  }

  /** A call has failed or taken too long. */
  #giveUp(account: Account, flight: Flight, error: Error): void {
    const now = this.#parts.time.now();
    account.giveUp(flight, error);
    account.failures += 1;
    account.unmet = 0;
    account.owner.counters.leaseFailures += 1;
    this.#fail(error, false, now);
    account.blockedUntil = now + Math.min(LONGEST_RETRY_MS, RETRY_MS * account.failures) * (1 + this.#parts.random());
    this.#parts.settled(account);
    if (!this.#closing && !account.released) this.wakes.wakeBy(account, account.blockedUntil);
    flight.settle();
  }

  #terms(): GrantTerms {
    const { random, store, weight } = this.#parts;
    const spread = store.leaseNow ? 0 : 0.1 * random();
    return { weight, roundTripMs: this.#roundTripMs, inProcess: store.leaseNow !== undefined, spread };
  }

  #fail(error: Error, certain: boolean, now: Milliseconds): void {
    if (!this.#breaker.failed(error, certain, now)) return;
    this.#parts.observer.degradedChanged({ degraded: true, forMs: undefined, error });
  }

  #recovered(now: Milliseconds): void {
    const since = this.#breaker.openSince ?? now;
    this.#breaker.succeeded();
    this.#parts.observer.degradedChanged({ degraded: false, forMs: now - since, error: undefined });
    // What was admitted without the ceiling is charged to it, also where nobody asks for that key again.
    for (const account of this.#parts.accounts(true)) {
      if (account.outageSince === 0 && account.refund === 0) continue;
      account.forced = true;
      this.#tick.add(account);
    }
  }

  /** The store's data is not what it was: every account of it that holds tokens says so at once. */
  #newEra(account: Account, era: string): void {
    const first = !account.met;
    account.era = era;
    if (first) return;
    for (const other of this.#parts.accounts()) {
      if (other.clock !== account.clock || other.era === era || other.balance === 0) continue;
      other.forced = true;
      this.#tick.add(other);
    }
  }

  #woken(account: Account, now: Milliseconds): void {
    this.#noticeSuspend(now);
    this.#expire(account, now);
    if (account.attempted > 0) account.measure(now);
    if (account.owesCall(now)) account.forced = true;
    const due = account.lacking || account.missed > 0;
    if (account.forced || (due && now >= account.blockedUntil)) this.#tick.add(account);
    this.#schedule(account, now);
  }

  /** Sets when the account must next be looked at without being asked. */
  #schedule(account: Account, now: Milliseconds): void {
    account.rest();
    if (this.#closing || account.released) return;
    this.wakes.wakeBy(account, account.lookAt(now));
  }

  #expire(account: Account, now: Milliseconds): void {
    const dead = expire(account, now);
    if (dead === 0) return;
    account.lapsed = true;
    account.owner.counters.tokensExpired += dead / MICRO;
  }

  /** The machine slept: leases may have ended without this clock noticing, so none is believed any more. */
  #noticeSuspend(now: Milliseconds): void {
    if (!this.#suspend.noticed()) return;
    for (const account of this.#parts.accounts()) {
      account.endsAt = Number.NEGATIVE_INFINITY;
      this.#expire(account, now);
      const { flight } = account;
      if (!flight) continue;
      account.giveUp(flight, new CeilingError('The machine was suspended while the call was under way.'));
      flight.settle();
      this.#tick.add(account);
    }
  }
}
