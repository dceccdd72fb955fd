import { onAbort } from '../abort.js';
import type { SeatReply, SeatStore } from '../ceiling/seat-store.js';
import { Crowd } from '../crowd.js';
import { WakeQueue } from '../lease/wake-queue.js';
import { Place } from '../line.js';
import { type ConcurrencyTerms, termsFor } from '../policy/policy.js';
import type { Random, Timer } from '../time.js';
import type { Milliseconds } from '../units.js';
import { noSeat, nothing, type Seat, type SeatRefusal, takenSeat } from './seat.js';
import { type Patience, SeatAccount, type SeatedPolicy, type SeatWaiter } from './seat-account.js';
import { type SeatRoad, sendSeatCalls } from './seat-calls.js';

/** What the desk is made of. */
export interface SeatDeskParts extends SeatRoad {
  /** Whether the store can be asked at all now. */
  readonly ready: () => boolean;
  readonly random: Random;
  /** Random identity of this limiter object at the store. */
  readonly holder: string;
  /** Largest size of the fleet in the last ten minutes; 0 while it was never learnt. */
  readonly fleetSize: () => number;
  /** Given where keys leave this process under other names. */
  readonly digest: ((key: string) => string) | undefined;
  /** Told when the store knows a newer limit than this instance. */
  readonly outdated: () => void;
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
  readonly #crowd: Crowd;
  #closed = false;

  constructor(parts: SeatDeskParts) {
    this.#parts = parts;
    this.#crowd = new Crowd(parts.time);
    this.#wakes = new WakeQueue(parts.time, (account, now) => this.#woken(account, now));
  }

  /** Takes a seat of `key`, waiting where that can help; without a limit there is always one. */
  async enter(owner: SeatedPolicy, key: string, patience: Patience): Promise<Seat> {
    const { mode, concurrency } = termsFor(owner.policy, key);
    if (this.#closed) return noSeat('closed');
    if (mode === 'deny') return noSeat('denied-by-policy');
    const now = this.#parts.time.now();
    if (mode === 'enforce' && !concurrency && now < owner.blockEnd(key)) return noSeat('blocked');
    if (mode === 'allow' || !concurrency) return takenSeat(nothing);
    const shadow = mode === 'shadow';
    // A shadow policy must not hold up what it lets in: it waits for the store's answer, but never for a seat.
    const patient = shadow ? { ...patience, maxWaitMs: undefined } : patience;
    const seat = await this.#seek(owner, key, concurrency, patient, now);
    if (seat.allowed) owner.counters.seatsTaken += 1;
    else if (!shadow || seat.reason === 'closed') owner.counters.seatsRefused += 1;
    else {
      owner.counters.seatsShadowRefused += 1;
      return takenSeat(nothing);
    }
    return seat;
  }

  #seek(
    owner: SeatedPolicy,
    key: string,
    concurrency: ConcurrencyTerms,
    patience: Patience,
    now: Milliseconds,
  ): Promise<Seat> | Seat {
    const { maxWaitMs } = patience;
    const blockEnd = owner.blockEnd(key);
    const shut = now < blockEnd;
    if (shut && !outlasts(maxWaitMs === undefined ? now : now + maxWaitMs, blockEnd)) return noSeat('blocked');
    const account = this.#open(owner, key);
    if (account.waiters.size === 0 && this.#parts.seats.holdNow && !shut) {
      if (this.#fetchNow(account, concurrency, 1, now) > 0) return this.#seat(account);
      if (maxWaitMs === undefined) return this.#turnedAway(account, 'full', now);
    } else if (now < account.pausedUntil && maxWaitMs === undefined) {
      if (account.failed && account.held < this.#mostAlone(account, concurrency)) {
        account.held += 1;
        account.changed = true;
        return this.#seat(account);
      }
      return this.#turnedAway(account, account.refusal, now);
    }
    if (maxWaitMs === 0) return this.#turnedAway(account, account.refusal, now);
    if (account.waiters.size >= patience.maxQueued) return this.#turnedAway(account, 'queue-full', now);
    return this.#wait(account, patience, now);
  }

  /** Seats in use here under one policy. */
  held(policy: string): number {
    let held = 0;
    for (const account of this.#accounts.get(policy)?.values() ?? []) held += account.held;
    return held;
  }

  /** A key has been blocked, or no longer is: who waits for a seat and can't outwait that does so in vain. */
  marked(policy: string, name: string): void {
    const accounts = this.#accounts.get(policy);
    const account = this.#parts.digest
      ? [...(accounts?.values() ?? [])].find((other) => other.name === name)
      : accounts?.get(name);
    if (!account) return;
    const now = this.#parts.time.now();
    const { blockEnd } = account;
    if (now < blockEnd) {
      for (const waiter of account.waiters) {
        if (!waiter.patient || !outlasts(waiter.deadline, blockEnd)) this.#refuse(account, waiter, 'blocked');
      }
    } else if (account.waiters.size > 0) this.#ask(account);
    this.#arrange(account, now);
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

  #turnedAway(account: SeatAccount, reason: SeatRefusal, now: Milliseconds): Seat {
    this.#forget(account, now);
    return noSeat(reason);
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
          leaveSignal();
          resolve(seat);
        },
      };
      const leaveSignal = onAbort(signal, aborted);
      account.waiters.add(waiter);
      this.#crowd.grow(1);
      this.#wakes.wakeBy(account, waiter.deadline);
      if (now >= account.pausedUntil && account.wanting(now) > 0) this.#ask(account);
      else this.#arrange(account, now);
    });
  }

  #leave(account: SeatAccount, waiter: SeatWaiter): void {
    if (account.waiters.delete(waiter)) this.#crowd.grow(-1);
  }

  #refuse(account: SeatAccount, waiter: SeatWaiter, reason: SeatRefusal): void {
    this.#leave(account, waiter);
    waiter.settle(noSeat(reason));
  }

  /** A seat that has been counted as held. */
  #seat(account: SeatAccount): Seat {
    return takenSeat(() => {
      if (account.mayHandOn(this.#parts.time.now())) {
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
    const call = { ...account.call(this.#parts.holder, this.#seq, terms, now), want };
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
      const quiet = account.wanting(now) === 0 && !account.changed && now < account.renewAt;
      for (const waiter of account.waiters) waiter.asked = true;
      if (!terms) this.#unlimited(account, now);
      else if (quiet) this.#forget(account, now);
      else if (this.#parts.seats.holdNow) {
        this.#serve(account, this.#fetchNow(account, terms, account.wanting(now), now), now);
      } else if (!this.#parts.ready()) this.#unanswered(account, terms, now);
      else asking.push([account, terms]);
    }
    if (asking.length > 0) this.#send(asking, now);
  }

  #send(asking: readonly [SeatAccount, ConcurrencyTerms][], now: Milliseconds): void {
    const { holder, time } = this.#parts;
    const calls = asking.map(([account, terms]) => {
      this.#seq += 1;
      account.flight = this.#seq;
      account.changed = false;
      return account.call(holder, this.#seq, terms, now);
    });
    sendSeatCalls(this.#parts, calls, (i, reply) => {
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
    });
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
      if (account.wanting(now) > 0) this.#admitFirst(account);
      else {
        account.held -= 1;
        account.changed = true;
      }
    }
    const full = account.wanting(now) > 0;
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
    while (account.wanting(now) > 0 && account.held < most) {
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
    while (account.wanting(now) > 0) {
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
    if (account.waiters.size > account.wanting(now)) this.#wakes.wakeBy(account, account.blockEnd);
    this.#forget(account, now);
  }

  #woken(account: SeatAccount, now: Milliseconds): void {
    for (const waiter of account.waiters) {
      if (now >= waiter.deadline) this.#refuse(account, waiter, account.refusal);
    }
    const due = account.wanting(now) > 0 || account.changed || (account.held > 0 && now >= account.renewAt);
    if (due && now >= account.pausedUntil) this.#ask(account);
    // One whose call is on its way is arranged for when the answer comes; only a deadline may come before.
    if (account.flight === 0 && !account.queued) this.#arrange(account, now);
    else for (const { deadline } of account.waiters) this.#wakes.wakeBy(account, deadline);
  }
}

/** Whether one who waits until `deadline` sees the end of a block; nobody waits for one that has none. */
function outlasts(deadline: Milliseconds, blockEnd: Milliseconds): boolean {
  return blockEnd < Number.POSITIVE_INFINITY && deadline >= blockEnd;
}
