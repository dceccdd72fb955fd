import type { SeatReply, SeatStore } from '../ceiling/seat-store.js';
import { CeilingError } from '../errors.js';
import { WakeQueue } from '../lease/wake-queue.js';
import { Place } from '../line.js';
import { type ConcurrencyTerms, termsFor } from '../policy/policy.js';
import type { Random, Time, Timer } from '../time.js';
import type { Milliseconds } from '../units.js';
import { noSeat, type Seat, type SeatRefusal, takenSeat } from './seat.js';
import { SeatAccount, type SeatedPolicy, type SeatWaiter } from './seat-account.js';

/** What the desk is made of. */
export interface SeatDeskParts {
  /** Whether the store can be asked at all now. */
  readonly ready: () => boolean;
  readonly seats: SeatStore;
  readonly time: Time;
  readonly random: Random;
  /** Random identity of this limiter object at the store. */
  readonly holder: string;
  /** How long a call may take before it is given up. */
  readonly deadlineMs: Milliseconds;
  /** Largest size of the fleet in the last ten minutes; 0 while it was never learnt. */
  readonly fleetSize: () => number;
  /** Told when the store knows a newer limit than this instance. */
  readonly outdated: () => void;
}

/** How long a caller of `enter` waits. */
export interface Patience {
  /** Left out: for one answer of the store. */
  readonly maxWaitMs: Milliseconds | undefined;
  readonly signal: AbortSignal | undefined;
  /** Those of a higher one are seated first, among those who wait here. */
  readonly priority: number;
  /** Where so many wait here already, one more is turned away. */
  readonly maxQueued: number;
}

/** Where there is no seat, the store is asked again after this, up to half as long more at random. */
const ASK_AGAIN_MS: Milliseconds = 50;
/** A store in this process tells nobody when a seat of another limiter comes free, but costs nothing to ask. */
const ASK_AGAIN_IN_PROCESS_MS: Milliseconds = 5;
/** The store hears of seats this often in the time after which it takes them for left. */
const RENEWALS = 3;

/**
 * Hands out the seats of all policies of a limiter. Whoever enters without a free seat waits for the store's answer;
 * all that is asked, given back or renewed in one tick goes out together, one call in flight for each key. A seat that
 * comes free is handed on here where that is fair to the rest of the fleet, and costs no call then.
 */
export class SeatDesk {
  readonly #parts: SeatDeskParts;
  readonly #accounts = new Map<string, Map<string, SeatAccount>>();
  readonly #wakes: WakeQueue<SeatAccount>;
  #tick: SeatAccount[] = [];
  #tickTimer: Timer | undefined;
  #seq = 0;
  #waiting = 0;
  #letGo: (() => void) | undefined;
  #closed = false;

  constructor(parts: SeatDeskParts) {
    this.#parts = parts;
    this.#wakes = new WakeQueue(parts.time, (account, now) => this.#woken(account, now));
  }

  /** Takes a seat of `key`, waiting where that can help; without a limit there is always one. */
  enter(owner: SeatedPolicy, key: string, patience: Patience): Promise<Seat> {
    const { maxWaitMs } = patience;
    const { mode, concurrency } = termsFor(owner.policy, key);
    if (this.#closed) return Promise.resolve(noSeat('closed'));
    if (mode === 'deny') return Promise.resolve(noSeat('denied-by-policy'));
    const now = this.#parts.time.now();
    if (mode === 'enforce' && now < owner.blockEnd(key)) return Promise.resolve(noSeat('blocked'));
    if (!concurrency || mode !== 'enforce') return Promise.resolve(takenSeat(() => {}));
    const account = this.#open(owner, key);
    if (account.waiters.size === 0 && this.#parts.seats.holdNow) {
      if (this.#fetchNow(account, concurrency, 1, now) > 0) return Promise.resolve(this.#seat(account));
      if (maxWaitMs === undefined) return this.#turnedAway(account, 'full', now);
    } else if (now < account.pausedUntil && maxWaitMs === undefined) {
      if (account.failed && account.held < this.#mostAlone(account, concurrency)) {
        account.held += 1;
        account.changed = true;
        return Promise.resolve(this.#seat(account));
      }
      return this.#turnedAway(account, refusalOf(account), now);
    }
    if (maxWaitMs === 0) return this.#turnedAway(account, refusalOf(account), now);
    if (account.waiters.size >= patience.maxQueued) return this.#turnedAway(account, 'queue-full', now);
    return this.#wait(account, patience, now);
  }

  /** Seats in use here under one policy. */
  held(policy: string): number {
    let held = 0;
    for (const account of this.#accounts.get(policy)?.values() ?? []) held += account.held;
    return held;
  }

  /** A key has been blocked, or no longer is: whoever waits for a seat of one that is does so in vain. */
  marked(policy: string, key: string): void {
    const account = this.#accounts.get(policy)?.get(key);
    if (!account || this.#parts.time.now() >= account.owner.blockEnd(key)) return;
    for (const waiter of account.waiters) this.#refuse(account, waiter, 'blocked');
  }

  /** A newer version is in force: other limits may let somebody in. */
  changed(policy: string): void {
    for (const account of this.#accounts.get(policy)?.values() ?? []) {
      account.pausedUntil = Number.NEGATIVE_INFINITY;
      if (account.waiters.size > 0) this.#ask(account);
    }
  }

  /** Answers whoever waits. Seats that are still in use stay so at the store until it takes them for left. */
  close(): void {
    this.#closed = true;
    for (const accounts of this.#accounts.values()) {
      for (const account of accounts.values()) {
        for (const waiter of account.waiters) this.#refuse(account, waiter, 'closed');
      }
    }
    this.#wakes.close();
    this.#tickTimer?.cancel();
  }

  #open(owner: SeatedPolicy, key: string): SeatAccount {
    const { name } = owner.policy;
    let accounts = this.#accounts.get(name);
    if (!accounts) {
      accounts = new Map();
      this.#accounts.set(name, accounts);
    }
    let account = accounts.get(key);
    if (!account) {
      account = new SeatAccount(key, owner);
      accounts.set(key, account);
    }
    return account;
  }

  #forget(account: SeatAccount, now: Milliseconds): void {
    if (!account.idle(now)) return;
    this.#wakes.forget(account);
    this.#accounts.get(account.owner.policy.name)?.delete(account.key);
  }

  #turnedAway(account: SeatAccount, reason: SeatRefusal, now: Milliseconds): Promise<Seat> {
    this.#forget(account, now);
    return Promise.resolve(noSeat(reason));
  }

  #wait(account: SeatAccount, { maxWaitMs, signal, priority }: Patience, now: Milliseconds): Promise<Seat> {
    return new Promise((resolve, reject) => {
      const aborted = (): void => {
        this.#leave(account, waiter);
        this.#forget(account, this.#parts.time.now());
        reject(signal?.reason);
      };
      const waiter: SeatWaiter = {
        deadline: maxWaitMs === undefined ? Number.POSITIVE_INFINITY : now + maxWaitMs,
        patient: maxWaitMs !== undefined,
        asked: false,
        priority,
        place: new Place(),
        settle(seat) {
          signal?.removeEventListener('abort', aborted);
          resolve(seat);
        },
      };
      signal?.addEventListener('abort', aborted, { once: true });
      account.waiters.add(waiter);
      this.#grow(1);
      this.#wakes.wakeBy(account, waiter.deadline);
      if (now >= account.pausedUntil) this.#ask(account);
      else this.#wakes.wakeBy(account, account.pausedUntil);
    });
  }

  #leave(account: SeatAccount, waiter: SeatWaiter): void {
    if (account.waiters.delete(waiter)) this.#grow(-1);
  }

  #refuse(account: SeatAccount, waiter: SeatWaiter, reason: SeatRefusal): void {
    this.#leave(account, waiter);
    waiter.settle(noSeat(reason));
  }

  /** While somebody waits, the process must not end for want of anything else to do. */
  #grow(by: 1 | -1): void {
    this.#waiting += by;
    if (this.#waiting > 0) this.#letGo ??= this.#parts.time.keepAlive?.();
    else {
      this.#letGo?.();
      this.#letGo = undefined;
    }
  }

  /** A seat that has been counted as held. */
  #seat(account: SeatAccount): Seat {
    return takenSeat(() => {
      if (account.mayHandOn) {
        this.#admitFirst(account);
        return;
      }
      account.held -= 1;
      account.changed = true;
      this.#ask(account);
    });
  }

  #admitFirst(account: SeatAccount): void {
    const { first } = account.waiters;
    if (!first) return;
    this.#leave(account, first);
    first.settle(this.#seat(account));
  }

  /** Asks a store in this process; answers how many seats it granted, all of which count as held from here on. */
  #fetchNow(account: SeatAccount, terms: ConcurrencyTerms, want: number, now: Milliseconds): number {
    this.#seq += 1;
    account.changed = false;
    const call = { ...account.call(this.#parts.holder, this.#seq, terms), want };
    const reply = (this.#parts.seats as Required<SeatStore>).holdNow(call);
    this.#heard(account, reply, terms, now);
    account.held += reply.granted;
    return reply.granted;
  }

  /** Has the account's next call sent with this tick's, if it is not under way. */
  #ask(account: SeatAccount): void {
    if (account.queued || account.flight > 0 || this.#closed) return;
    account.queued = true;
    this.#tick.push(account);
    this.#tickTimer ??= this.#parts.time.after(0, () => this.#flush());
  }

  #flush(): void {
    this.#tickTimer = undefined;
    const accounts = this.#tick;
    this.#tick = [];
    const now = this.#parts.time.now();
    const asking: [SeatAccount, ConcurrencyTerms][] = [];
    for (const account of accounts) {
      account.queued = false;
      const { terms } = account;
      const quiet = account.waiters.size === 0 && !account.changed && now < account.renewAt;
      for (const waiter of account.waiters) waiter.asked = true;
      if (!terms) this.#unlimited(account, now);
      else if (quiet) this.#forget(account, now);
      else if (this.#parts.seats.holdNow) {
        this.#serve(account, this.#fetchNow(account, terms, account.waiters.size, now), now);
      } else if (!this.#parts.ready()) this.#unanswered(account, terms, now);
      else asking.push([account, terms]);
    }
    if (asking.length > 0) this.#send(asking, now);
  }

  #send(asking: readonly [SeatAccount, ConcurrencyTerms][], now: Milliseconds): void {
    const { deadlineMs, holder, seats, time } = this.#parts;
    const calls = asking.map(([account, terms]) => {
      this.#seq += 1;
      account.flight = this.#seq;
      account.changed = false;
      return account.call(holder, this.#seq, terms);
    });
    const pending = new Set(calls.keys());
    /** Ends call `i` once: whatever comes for it later is ignored for ever. */
    const end = (i: number, reply?: SeatReply): void => {
      if (!pending.delete(i)) return;
      if (pending.size === 0) deadline.cancel();
      const [account, terms] = asking[i] as [SeatAccount, ConcurrencyTerms];
      const at = time.now();
      account.flight = 0;
      if (this.#closed) return;
      if (reply?.status !== 'granted') {
        // What it may have granted is not used: the store must hear what is really held.
        account.changed = true;
        this.#unanswered(account, terms, at);
        return;
      }
      this.#heard(account, reply, terms, now);
      account.held += reply.granted;
      this.#serve(account, reply.granted, at);
    };
    const deadline = time.after(deadlineMs, () => {
      for (const i of pending) end(i);
    });
    for (const [i, reply] of repliesOf(seats, calls).entries()) {
      reply.then(
        (reply) => end(i, reply),
        () => end(i),
      );
    }
  }

  /** @param asOf when the store was asked: its lease on the seats is counted from then */
  #heard(account: SeatAccount, reply: SeatReply, terms: ConcurrencyTerms, asOf: Milliseconds): void {
    account.failed = false;
    account.most = reply.most;
    account.renewAt = asOf + terms.lostAfterMs / RENEWALS;
    if (reply.version > account.owner.policy.version) this.#parts.outdated();
  }

  /** Seats that have been granted, and are counted as held, go to those who wait; what is over goes back. */
  #serve(account: SeatAccount, granted: number, now: Milliseconds): void {
    for (let i = 0; i < granted; i++) {
      if (account.waiters.size > 0) this.#admitFirst(account);
      else {
        account.held -= 1;
        account.changed = true;
      }
    }
    const full = account.waiters.size > 0;
    for (const waiter of account.waiters) {
      if ((waiter.asked && !waiter.patient) || now >= waiter.deadline) this.#refuse(account, waiter, 'full');
    }
    this.#pause(account, full, now);
    if (account.changed) this.#ask(account);
  }

  /** The store did not answer: the outage mode says who enters all the same. What it granted is never used. */
  #unanswered(account: SeatAccount, terms: ConcurrencyTerms, now: Milliseconds): void {
    account.failed = true;
    const most = this.#mostAlone(account, terms);
    while (account.waiters.size > 0 && account.held < most) {
      account.held += 1;
      account.changed = true;
      this.#admitFirst(account);
    }
    for (const waiter of account.waiters) {
      if (!waiter.patient || now >= waiter.deadline) this.#refuse(account, waiter, 'degraded');
    }
    this.#pause(account, true, now);
  }

  /** How many may be in flight here while nobody can ask the store. */
  #mostAlone(account: SeatAccount, terms: ConcurrencyTerms): number {
    const { mode, fleet } = account.owner.policy.outage;
    if (mode === 'allow') return Number.POSITIVE_INFINITY;
    const size = Math.max(this.#parts.fleetSize(), fleet ?? 0);
    return mode === 'share' && size > 0 ? Math.floor(terms.limit / size) : 0;
  }

  /** A newer policy counts no seats any more. */
  #unlimited(account: SeatAccount, now: Milliseconds): void {
    account.changed = false;
    account.renewAt = Number.POSITIVE_INFINITY;
    while (account.waiters.size > 0) {
      account.held += 1;
      this.#admitFirst(account);
    }
    this.#forget(account, now);
  }

  /** An answer has come, or none: asking again at once may be `useless`. */
  #pause(account: SeatAccount, useless: boolean, now: Milliseconds): void {
    const { random, seats } = this.#parts;
    const pauseMs = seats.holdNow ? ASK_AGAIN_IN_PROCESS_MS : ASK_AGAIN_MS * (1 + random() / 2);
    account.pausedUntil = useless ? now + pauseMs : Number.NEGATIVE_INFINITY;
    this.#arrange(account, now);
  }

  /** Sees to it that the account is looked at again in time. */
  #arrange(account: SeatAccount, now: Milliseconds): void {
    if (now < account.pausedUntil) this.#wakes.wakeBy(account, account.pausedUntil);
    if (account.held > 0) this.#wakes.wakeBy(account, Math.max(account.renewAt, account.pausedUntil));
    for (const { deadline } of account.waiters) this.#wakes.wakeBy(account, deadline);
    this.#forget(account, now);
  }

  #woken(account: SeatAccount, now: Milliseconds): void {
    for (const waiter of account.waiters) {
      if (now >= waiter.deadline) this.#refuse(account, waiter, refusalOf(account));
    }
    const due = account.waiters.size > 0 || account.changed || (account.held > 0 && now >= account.renewAt);
    if (due && now >= account.pausedUntil) this.#ask(account);
    // One whose call is on its way is arranged for when the answer comes; only a deadline may come before.
    if (account.flight === 0 && !account.queued) this.#arrange(account, now);
    else for (const { deadline } of account.waiters) this.#wakes.wakeBy(account, deadline);
  }
}

function refusalOf(account: SeatAccount): SeatRefusal {
  return account.failed ? 'degraded' : 'full';
}

/** The replies to `calls`, those that could not even be sent included. */
function repliesOf(seats: SeatStore, calls: Parameters<SeatStore['hold']>[0]): readonly Promise<SeatReply>[] {
  try {
    return seats.hold(calls);
  } catch (error) {
    return calls.map(() => Promise.reject(new CeilingError(String(error), { cause: error })));
  }
}
