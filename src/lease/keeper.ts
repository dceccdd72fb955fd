import { type CeilingStore, type LeaseCall, type LeaseReply, partitionOf } from '../ceiling/ceiling-store.js';
import { CeilingError } from '../errors.js';
import { termsFor } from '../policy/policy.js';
import type { Observer } from '../telemetry/observer.js';
import type { Random, Time, Timer } from '../time.js';
import { MICRO, type Milliseconds } from '../units.js';
import { Account, type Flight, type LeasedPolicy } from './account.js';
import { Breaker } from './breaker.js';
import { composeCall, IDLE_MS, ledgerName } from './call.js';
import { Fleet } from './fleet.js';
import { type GrantTerms, takeGrant } from './grant.js';
import { StoreClock } from './store-clock.js';
import { SuspendWatch } from './suspend-watch.js';
import { Trip } from './trip.js';
import { WakeQueue } from './wake-queue.js';
import { expire } from './wallet.js';

/** What the keeper is made of. */
export interface KeeperParts {
  readonly store: CeilingStore;
  readonly time: Time;
  readonly random: Random;
  readonly observer: Observer;
  /** Random identity of this limiter object at the store; new for each, set by no option (rule 3). */
  readonly holder: string;
  readonly group: string;
  readonly weight: number;
  /** How long a call may take before it is given up. */
  readonly deadlineMs: Milliseconds;
  /** All accounts there are; asked only when something befell them all. */
  readonly accounts: () => Iterable<Account>;
  /** Told when an account was answered, or can't be: its waiting callers may now be served or refused. */
  readonly settled: (account: Account) => void;
  /** Told when the store knows newer terms than this instance. */
  readonly outdated: (owner: LeasedPolicy) => void;
}

/** After a failed call an account pauses this long, up to twice as long at random, so that a fleet does not retry as one. */
const RETRY_MS: Milliseconds = 20;

/**
 * The bottom half: everything that talks to the ceiling store. Callers only ever touch accounts in memory and leave
 * word here; all accounts that want something in one tick go out together, one call in flight for each (rule 2), each
 * with a deadline after which it is given up for good (rule 4).
 */
export class Keeper {
  readonly #parts: KeeperParts;
  readonly #breaker: Breaker;
  readonly #wakes: WakeQueue<Account>;
  readonly #suspend: SuspendWatch;
  readonly #fleet: Fleet;
  readonly #clocks = new Map<number, StoreClock>();
  #tick: Account[] = [];
  #tickTimer: Timer | undefined;
  #seq = 0;
  #roundTripMs: Milliseconds = 1;
  #closing = false;
  #inFlight = 0;
  #landing: (() => void) | undefined;

  constructor(parts: KeeperParts) {
    this.#parts = parts;
    this.#breaker = new Breaker(parts.random);
    this.#wakes = new WakeQueue(parts.time, (account, now) => this.#woken(account, now));
    this.#suspend = new SuspendWatch(parts.time);
    this.#fleet = new Fleet({
      ...parts,
      answered: () => {
        if (this.#breaker.open) this.#recovered(parts.time.now());
      },
    });
  }

  /** Starts saying that this limiter is alive. */
  start(): void {
    this.#fleet.start();
  }

  /** An account for `key`; the keeper holds no reference to it until it is asked to do something. */
  open(key: string, owner: LeasedPolicy): Account {
    const partition = partitionOf(ledgerName(owner.policy), key);
    let clock = this.#clocks.get(partition);
    if (!clock) {
      clock = new StoreClock();
      this.#clocks.set(partition, clock);
    }
    return new Account(key, owner, termsFor(owner.policy, key), clock, this.#parts.time.now());
  }

  /** Whether this account can't get tokens now: its store, or its part of it, does not answer. */
  unreachable(account: Account): boolean {
    return this.#breaker.open || account.failures >= 2;
  }

  get degraded(): boolean {
    return this.#breaker.open;
  }

  /** When the store was found to be out of reach; `now` where only a part of it is. */
  unreachableSince(now: Milliseconds): Milliseconds {
    return this.#breaker.openSince ?? now;
  }

  /** Whole milliseconds until the next attempt to reach the store. */
  probeWait(now: Milliseconds): Milliseconds {
    return Math.max(1, Math.ceil(this.#breaker.probeAt - now));
  }

  /** Largest size of this limiter's group in the last ten minutes; 0 while it was never learnt. */
  get fleetSize(): number {
    return this.#fleet.size;
  }

  /** Asks for a call in this tick, if one is useful now; from the decision path, so cheap where it is not. */
  renew(account: Account, now: Milliseconds): void {
    if (account.queued || account.flight || now < account.blockedUntil) return;
    this.#enqueue(account);
  }

  /** A caller that does not wait found too little: fetch for the next one. Answers whether that was done at once. */
  missed(account: Account, cost: number, now: Milliseconds): boolean {
    if (cost > account.missed) account.missed = cost;
    if (account.flight || now < account.blockedUntil) return false;
    if (!this.#parts.store.leaseNow) {
      this.#enqueueOnce(account);
      return false;
    }
    this.#callNow(account, now);
    return account.balance >= cost;
  }

  /** Waiting callers have come or gone: wake the account when a call for them is useful. */
  waitersChanged(account: Account, now: Milliseconds): void {
    if (account.waiting <= account.balance) return;
    if (now < account.blockedUntil) this.#wakes.wakeBy(account, account.blockedUntil);
    else this.renew(account, now);
  }

  /** Asks for a call though nobody needs tokens: terms have changed, or all should be given back. */
  reconcile(account: Account): void {
    account.terms = termsFor(account.owner.policy, account.key);
    account.blockedUntil = 0;
    if (account.balance === 0) return;
    account.forced = true;
    if (!account.flight) this.#enqueue(account);
  }

  /** Lets go of an account that is being forgotten. */
  forget(account: Account): void {
    this.#wakes.forget(account);
  }

  /** Gives everything back, waiting for answers no longer than one deadline, and stops. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#fleet.close();
    for (const account of this.#parts.accounts()) this.reconcile(account);
    // Twice: what was in flight when closing began can only be given back after it has landed.
    for (let round = 0; round < 2; round++) {
      this.#flush();
      if (this.#inFlight > 0) await new Promise<void>((resolve) => (this.#landing = resolve));
    }
    this.#wakes.close();
    this.#tickTimer?.cancel();
    this.#tick = [];
  }

  #enqueue(account: Account): void {
    account.queued = true;
    this.#tick.push(account);
    this.#tickTimer ??= this.#parts.time.after(0, () => this.#flush());
  }

  #flush(): void {
    this.#tickTimer?.cancel();
    this.#tickTimer = undefined;
    const accounts = this.#tick;
    this.#tick = [];
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
    if (calls.length > 0) this.#send(calls, callers, now);
  }

  /** The call this account should make now, its flight begun; or none, and it will be woken or asked again. */
  #prepare(account: Account, now: Milliseconds): LeaseCall | undefined {
    if (account.flight) return undefined;
    this.#expire(account, now);
    if (!this.#parts.store.ready) this.#fail(new CeilingError('The ceiling store is not connected.'), true, now);
    if (now < account.blockedUntil && !account.forced) {
      this.#schedule(account, now);
      return undefined;
    }
    if (!this.#parts.store.ready || !this.#breaker.admits(now)) {
      // Whoever needs tokens later asks again; only what is owed is remembered.
      account.missed = 0;
      if (account.disown > 0 || account.balance > 0) this.#wakes.wakeBy(account, now + IDLE_MS);
      this.#parts.settled(account);
      return undefined;
    }
    const composed = composeCall(account, this.#parts, this.#seq + 1, now, this.#closing);
    if (!composed) {
      this.#schedule(account, now);
      return undefined;
    }
    this.#seq += 1;
    account.flight = composed.flight;
    account.forced = false;
    account.owner.counters.leaseCalls += 1;
    account.owner.counters.tokensReturned += composed.flight.returned / MICRO;
    return composed.call;
  }

  #send(calls: LeaseCall[], callers: Account[], now: Milliseconds): void {
    const trip = new Trip(calls.length);
    const flights = callers.map((account) => account.flight as Flight);
    this.#inFlight += calls.length;
    const giveUp = (i: number, error: Error): void => {
      const account = callers[i] as Account;
      const flight = flights[i] as Flight;
      if (account.flight !== flight) return;
      trip.failed(error);
      this.#giveUp(account, flight, error);
    };
    const end = this.#parts.observer.roundTrip(trip.start(calls), () => {
      for (const [i, reply] of this.#parts.store.lease(calls).entries()) {
        reply.then(
          (reply) => {
            if (reply.status === 'granted') trip.granted += reply.granted / MICRO;
            this.#landed(callers[i] as Account, flights[i] as Flight, reply);
          },
          (error: unknown) => giveUp(i, asError(error)),
        );
      }
    });
    const deadline = this.#parts.time.after(this.#parts.deadlineMs, () => {
      const error = new CeilingError(`The ceiling store did not answer within ${this.#parts.deadlineMs} ms.`);
      for (let i = 0; i < calls.length; i++) giveUp(i, error);
    });
    for (const flight of flights) {
      flight.settle = () => {
        this.#inFlight -= 1;
        if (this.#inFlight === 0) this.#landing?.();
        if (!trip.settled()) return;
        deadline.cancel();
        end(trip.end(this.#parts.time.now() - now));
      };
    }
  }

  /** A store in this process answers within the call; nothing can be late, lost or doubled. */
  #callNow(account: Account, now: Milliseconds): void {
    const call = this.#prepare(account, now);
    const flight = account.flight;
    if (!call || !flight || !this.#parts.store.leaseNow) return;
    this.#take(account, flight, this.#parts.store.leaseNow(call), now);
  }

  /** A reply has come: taken, or ignored for ever where its call was given up (rule 4). */
  #landed(account: Account, flight: Flight, reply: LeaseReply): void {
    if (account.flight !== flight || reply.seq !== flight.seq) return;
    const now = this.#parts.time.now();
    this.#roundTripMs += (now - flight.sentAt - this.#roundTripMs) * 0.1;
    this.#take(account, flight, reply, now);
  }

  #take(account: Account, flight: Flight, reply: LeaseReply, now: Milliseconds): void {
    account.flight = undefined;
    account.failures = 0;
    account.clock.observe(reply.now, now);
    if (this.#breaker.open) this.#recovered(now);
    else this.#breaker.succeeded();
    if (reply.version > account.owner.policy.version) this.#parts.outdated(account.owner);
    if (reply.status === 'granted') {
      this.#noticeSuspend(now);
      takeGrant(account, flight, reply, now, this.#terms());
    } else {
      // Not executed: what it carried stays out of the wallet, and the fresh store time lets the next one through.
      account.disown ||= flight.seq;
      account.owner.counters.leaseRefusals += 1;
      account.forced = true;
    }
    if (reply.era !== account.era) this.#newEra(account, reply.era);
    this.#parts.settled(account);
    if (account.forced || (account.waiting > account.balance && now >= account.blockedUntil))
      this.#enqueueOnce(account);
    this.#schedule(account, now);
    flight.settle();
  }

  /** A call has failed or taken too long: whatever becomes of it, what it might have granted is disowned (rule 4). */
  #giveUp(account: Account, flight: Flight, error: Error): void {
    const now = this.#parts.time.now();
    account.flight = undefined;
    account.disown ||= flight.seq;
    account.failures += 1;
    account.owner.counters.leaseFailures += 1;
    this.#fail(error, false, now);
    account.forced = true;
    account.blockedUntil = now + RETRY_MS * Math.min(account.failures, 25) * (1 + this.#parts.random());
    this.#parts.settled(account);
    if (!this.#closing) this.#wakes.wakeBy(account, account.blockedUntil);
    flight.settle();
  }

  #terms(): GrantTerms {
    const { random, store, weight } = this.#parts;
    return { weight, roundTripMs: this.#roundTripMs, spread: store.leaseNow ? 0 : 0.1 * random() };
  }

  #fail(error: Error, certain: boolean, now: Milliseconds): void {
    if (!this.#breaker.failed(error, certain, now)) return;
    this.#parts.observer.degradedChanged({ degraded: true, forMs: undefined, error });
  }

  #recovered(now: Milliseconds): void {
    const since = this.#breaker.openSince ?? now;
    this.#breaker.succeeded();
    this.#parts.observer.degradedChanged({ degraded: false, forMs: now - since, error: undefined });
  }

  #enqueueOnce(account: Account): void {
    if (!account.queued && !account.flight) this.#enqueue(account);
  }

  /** The store's data is not what it was: every account of it that holds tokens says so at once. */
  #newEra(account: Account, era: string): void {
    const first = account.era === '';
    account.era = era;
    if (first) return;
    for (const other of this.#parts.accounts()) {
      if (other.clock !== account.clock || other.era === era || other.balance === 0) continue;
      other.forced = true;
      this.#enqueueOnce(other);
    }
  }

  #woken(account: Account, now: Milliseconds): void {
    this.#expire(account, now);
    if (account.attempted > 0) account.activeAt = now;
    if (account.balance > 0 && now - account.activeAt >= IDLE_MS) account.forced = true;
    const due = account.waiting > account.balance || account.missed > 0;
    if (account.forced || (due && now >= account.blockedUntil)) this.#enqueueOnce(account);
    this.#schedule(account, now);
  }

  /** Sets when the account must next be looked at without being asked. */
  #schedule(account: Account, now: Milliseconds): void {
    if (this.#closing) return;
    if (account.waiting > account.balance && account.blockedUntil > now)
      this.#wakes.wakeBy(account, account.blockedUntil);
    if (account.disown > 0) this.#wakes.wakeBy(account, Math.max(account.blockedUntil, now + RETRY_MS));
    if (account.balance > 0) this.#wakes.wakeBy(account, Math.max(account.activeAt, now - IDLE_MS + 1) + IDLE_MS);
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
      account.flight = undefined;
      account.disown ||= flight.seq;
      account.forced = true;
      flight.settle();
      this.#enqueueOnce(account);
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new CeilingError(String(error));
}
