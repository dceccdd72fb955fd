import { levelAt } from '../algorithm/token-bucket.js';
import { ClosedError, CostAboveBurstError, InvalidCostError } from '../errors.js';
import type { Account } from '../lease/account.js';
import type { Keeper } from '../lease/keeper.js';
import type { WakeQueue } from '../lease/wake-queue.js';
import { liveBalance } from '../lease/wallet.js';
import { type Policy, termsFor } from '../policy/policy.js';
import type { Observer, PolicyGauges } from '../telemetry/observer.js';
import type { Time } from '../time.js';
import { MICRO, type MicroTokens, type Milliseconds, type Tokens } from '../units.js';
import { type AcquireOptions, checkAcquireOptions } from './acquire-options.js';
import {
  awaitsLease,
  type Decision,
  type Denial,
  isAllowed,
  limitedBy,
  reasonOf,
  VERDICT,
  type Verdict,
} from './decision.js';
import { Judge } from './judge.js';
import type { KeyState } from './key-state.js';
import { KeyTable } from './key-table.js';
import type { PolicyState } from './policy-state.js';
import { ANSWERS_AWAITED, type Waiter } from './waiter.js';

/** What a policy's limiter is made of. */
export interface PolicyLimiterParts {
  readonly owner: PolicyState;
  readonly keeper: Keeper;
  readonly observer: Observer;
  readonly time: Time;
  readonly wakes: WakeQueue<KeyState>;
  readonly maxKeys: number;
}

/**
 * One policy's rate limiter.
 *
 * | verb         | when there is no token                                                                       |
 * | ------------ | -------------------------------------------------------------------------------------------- |
 * | `tryAcquire` | `false`, at once: never I/O. The first touch of a key with a remote ceiling is denied "cold" |
 * | `decide`     | the same, as a {@link Decision} that says why and until when                                  |
 * | `acquire`    | waits for one answer of the ceiling store, or for tokens up to `maxWaitMs`                    |
 *
 * Request handlers should use `acquire`: a key that is asked for the first time then costs a round trip, not a denial.
 */
export class PolicyLimiter {
  readonly #owner: PolicyState;
  readonly #keeper: Keeper;
  readonly #observer: Observer;
  readonly #time: Time;
  readonly #wakes: WakeQueue<KeyState>;
  readonly #judge: Judge;
  readonly #keys: KeyTable;
  #lastNow: Milliseconds = Number.NEGATIVE_INFINITY;
  #waiting = 0;
  #closed = false;

  /** @internal Made by `createLimiter`. */
  constructor(parts: PolicyLimiterParts) {
    this.#owner = parts.owner;
    this.#keeper = parts.keeper;
    this.#observer = parts.observer;
    this.#time = parts.time;
    this.#wakes = parts.wakes;
    this.#judge = new Judge(parts.owner, parts.keeper);
    this.#keys = new KeyTable(parts.owner, parts.keeper, parts.wakes, parts.maxKeys);
  }

  /** The policy in force now. */
  get policy(): Policy {
    return this.#owner.policy;
  }

  /**
   * Takes `cost` tokens from every tier of `key` if all of them have it, and nothing otherwise. Never waits.
   *
   * @param key non-empty, at most 512 bytes of UTF-8
   * @param cost positive, at most six decimals; default 1
   * @throws {InvalidKeyError} {@link InvalidCostError} {@link CostAboveBurstError} {@link ClosedError}
   */
  tryAcquire(key: string, cost: Tokens = 1): boolean {
    const micro = cost === 1 && this.#unitFits ? MICRO : this.#checkCost(key, cost);
    const now = this.#now();
    const state = this.#keys.find(key, now);
    const verdict = this.#attempt(state, cost, micro, now);
    return verdict <= VERDICT.allowedDegraded || this.#denied(state, verdict, cost, now);
  }

  /** As {@link tryAcquire}, answered with what to do next. */
  decide(key: string, cost: Tokens = 1): Decision {
    const micro = this.#checkCost(key, cost);
    const now = this.#now();
    const state = this.#keys.find(key, now);
    const verdict = this.#attempt(state, cost, micro, now);
    if (!isAllowed(verdict)) this.#denied(state, verdict, cost, now);
    return this.#decision(state, verdict, cost, now);
  }

  /**
   * Takes `cost` tokens from every tier, waiting where that can help: for one answer of the ceiling store where this
   * instance has nothing in hand, or for tokens as long as `maxWaitMs` allows. First come, first served for each key.
   * Nothing is charged while it waits; a wait that can't end in time is refused at once.
   *
   * @throws as {@link tryAcquire}; rejects with the signal's reason where it is aborted first
   */
  acquire(key: string, options: AcquireOptions = {}): Promise<Decision> {
    try {
      return this.#acquire(key, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** @internal */
  accounts(): Iterable<Account> {
    return accountsOf(this.#keys.states());
  }

  /** @internal Something has changed for a key: an answer of the store, a refilled bucket, a deadline. */
  serve(state: KeyState, answered: boolean): void {
    const now = this.#now();
    if (state.waiters !== undefined && state.waiters.size > 0) this.#serveQueue(state, answered, now);
    else if (!answered) this.#keys.review(state, now);
  }

  /** @internal The store has answered for an account, or can't. */
  settled(account: Account): void {
    const state = this.#keys.peek(account.key);
    if (state?.account === account && state.waiters !== undefined && state.waiters.size > 0) this.serve(state, true);
  }

  /** @internal A newer version is in force: whoever holds tokens or waits must hear of it; other keys at their next call. */
  policyChanged(): void {
    const now = this.#now();
    for (const state of this.#keys.states()) {
      const holds = state.account !== undefined && state.account.balance > 0;
      const waits = state.waiters !== undefined && state.waiters.size > 0;
      if (holds || waits) this.#keys.refresh(state, now);
      if (waits) this.#serveQueue(state, false, now);
    }
  }

  /** @internal */
  gauges(): PolicyGauges {
    const now = this.#time.now();
    let held = 0;
    for (const account of this.accounts()) held += liveBalance(account, now);
    const { policy } = this.#owner;
    return {
      policy: policy.name,
      version: policy.version,
      tokensHeld: held / MICRO,
      keys: this.#keys.size,
      waiting: this.#waiting,
      degraded: this.#keeper.degraded && policy.terms.ceiling !== undefined,
    };
  }

  /** @internal */
  close(): void {
    this.#closed = true;
    const now = this.#now();
    for (const state of this.#keys.states()) {
      for (const waiter of state.waiters ?? []) {
        this.#settle(state, waiter, {
          ...this.#decision(state, VERDICT.ceilingEmpty, waiter.cost, now),
          ...CLOSED,
        } as Decision);
      }
    }
  }

  /** Whether a cost of one token fits every burst as constructed, so that the default cost needs no check. */
  get #unitFits(): boolean {
    return this.#owner.unitFits && !this.#closed;
  }

  /** The clock, held where it is should it ever go back: no bucket is paid twice for the same time. */
  #now(): Milliseconds {
    const now = this.#time.now();
    if (now < this.#lastNow) return this.#lastNow;
    this.#lastNow = now;
    return now;
  }

  #checkCost(key: string, cost: unknown): MicroTokens {
    if (this.#closed) throw new ClosedError();
    if (typeof cost !== 'number' || !(cost > 0) || cost === Number.POSITIVE_INFINITY) throw new InvalidCostError(cost);
    const micro = Math.round(cost * MICRO);
    if (micro < 1 || Math.abs(micro / MICRO - cost) > cost * Number.EPSILON) throw new InvalidCostError(cost);
    const constructed = this.#owner.constructed;
    const { local, ceiling } = constructed.overrides.size === 0 ? constructed.terms : termsFor(constructed, key);
    if (local !== undefined && cost > local.burst) throw new CostAboveBurstError(cost, 'local', local.burst);
    if (ceiling !== undefined && micro > ceiling.burst)
      throw new CostAboveBurstError(cost, 'ceiling', ceiling.burst / MICRO);
    return micro;
  }

  /** One attempt of a caller that does not wait: those who wait come first. */
  #attempt(state: KeyState, cost: Tokens, micro: MicroTokens, now: Milliseconds): Verdict {
    const { mode } = state.terms;
    if (mode === 'allow' || mode === 'deny') {
      if (mode === 'deny') return VERDICT.policyDenies;
      this.#owner.counters.allowed += 1;
      return VERDICT.allowed;
    }
    const queued = state.waiters !== undefined && state.waiters.size > 0;
    const verdict = queued ? this.#behind(state, micro, now) : this.#judge.judge(state, cost, micro, now, false);
    if (verdict <= VERDICT.allowedDegraded) this.#count(state, verdict, cost);
    return verdict;
  }

  /** The verdict for one who would have to overtake a queue. */
  #behind(state: KeyState, micro: MicroTokens, now: Milliseconds): Verdict {
    const { local } = state.terms;
    const [first] = state.waiters ?? [];
    if (local !== undefined && first !== undefined && levelAt(state, local, now) < first.cost)
      return VERDICT.localEmpty;
    if (state.account) state.account.attempted += micro;
    return state.account?.granted ? VERDICT.ceilingEmpty : VERDICT.ceilingCold;
  }

  #count(state: KeyState, verdict: Verdict, cost: Tokens): void {
    const { counters } = this.#owner;
    counters.allowed += 1;
    if (verdict === VERDICT.allowedDegraded) counters.allowedDegraded += 1;
    else if (state.account !== undefined) counters.tokensSpent += cost;
    if (state.overflow) counters.overflow += 1;
  }

  /** Counts and shows a denial; answers whether the call passes all the same, as under a shadow policy. */
  #denied(state: KeyState, verdict: Verdict, cost: Tokens, now: Milliseconds): boolean {
    const { counters, policy } = this.#owner;
    const shadow = state.terms.mode === 'shadow';
    if (shadow) {
      counters.shadowDenied += 1;
      counters.allowed += 1;
    } else if (verdict === VERDICT.policyDenies) counters.deniedPolicy += 1;
    else if (verdict <= VERDICT.localCostAboveBurst) counters.deniedLocal += 1;
    else counters.deniedCeiling += 1;
    if (state.overflow) counters.overflow += 1;
    if (this.#observer.watchesDenials()) {
      const denial = this.#denial(state, verdict, cost, now);
      this.#observer.denied({ policy: policy.name, policyVersion: policy.version, ...denial, cost, shadow });
    }
    return shadow;
  }

  #denial(state: KeyState, verdict: Verdict, cost: Tokens, now: Milliseconds): Denial {
    return {
      limitedBy: limitedBy(verdict),
      reason: reasonOf(verdict, state.overflow),
      retryAfterMs: this.#judge.wait(state, verdict, cost, now),
    };
  }

  #decision(state: KeyState, verdict: Verdict, cost: Tokens, now: Milliseconds): Decision {
    const { policy } = this.#owner;
    const head = {
      policy: policy.name,
      policyVersion: policy.version,
      remaining: this.#remaining(state, now),
      degraded: state.account !== undefined && this.#keeper.unreachable(state.account),
    };
    if (isAllowed(verdict)) return { allowed: true, ...head };
    const denial = this.#denial(state, verdict, cost, now);
    if (state.terms.mode === 'shadow') return { allowed: true, ...head, shadow: denial };
    return { allowed: false, ...head, ...denial };
  }

  #remaining(state: KeyState, now: Milliseconds): Tokens {
    const { local, mode } = state.terms;
    if (mode === 'deny') return 0;
    let remaining = Number.POSITIVE_INFINITY;
    if (local !== undefined) remaining = levelAt(state, local, now);
    if (state.account !== undefined) remaining = Math.min(remaining, liveBalance(state.account, now) / MICRO);
    return Math.floor(remaining);
  }

  #acquire(key: string, options: AcquireOptions): Promise<Decision> {
    const { cost, maxWaitMs, signal } = checkAcquireOptions(options);
    const micro = this.#checkCost(key, cost);
    signal?.throwIfAborted();
    const now = this.#now();
    const state = this.#keys.find(key, now);
    const verdict = this.#attempt(state, cost, micro, now);
    if (isAllowed(verdict) || !this.#worthWaiting(state, verdict, cost, maxWaitMs, now)) {
      if (!isAllowed(verdict)) this.#denied(state, verdict, cost, now);
      return Promise.resolve(this.#decision(state, verdict, cost, now));
    }
    return this.#enqueue(state, cost, micro, maxWaitMs, signal, now);
  }

  #worthWaiting(
    state: KeyState,
    verdict: Verdict,
    cost: Tokens,
    maxWaitMs: Milliseconds | undefined,
    now: Milliseconds,
  ): boolean {
    if (state.terms.mode !== 'enforce' && state.terms.mode !== 'shadow') return false;
    const blocked = (state.account?.blockedUntil ?? 0) > now;
    if (maxWaitMs === undefined) return awaitsLease(verdict) && !blocked;
    if (maxWaitMs === 0) return false;
    // Where an answer of the store is on its way, it decides; else what is known now does.
    if (awaitsLease(verdict) && !blocked) return true;
    const wait = this.#judge.wait(state, verdict, cost, now);
    return wait !== undefined && wait <= maxWaitMs;
  }

  #enqueue(
    state: KeyState,
    cost: Tokens,
    micro: MicroTokens,
    maxWaitMs: Milliseconds | undefined,
    signal: AbortSignal | undefined,
    now: Milliseconds,
  ): Promise<Decision> {
    return new Promise((resolve, reject) => {
      const observed = this.#observer.waiting(this.#owner.policy.name, cost);
      const aborted = (): void => {
        this.#leave(state, waiter);
        observed('aborted');
        reject(signal?.reason);
        this.#serveQueue(state, false, this.#now());
      };
      const waiter: Waiter = {
        cost,
        micro,
        patient: maxWaitMs !== undefined,
        deadline: maxWaitMs === undefined ? Number.POSITIVE_INFINITY : now + maxWaitMs,
        answers: 0,
        settle: (decision, outcome) => {
          signal?.removeEventListener('abort', aborted);
          observed(outcome);
          resolve(decision);
        },
      };
      signal?.addEventListener('abort', aborted, { once: true });
      state.waiters ??= new Set();
      state.waiters.add(waiter);
      this.#waiting += 1;
      this.#await(state, now);
      this.#wakes.wakeBy(state, waiter.deadline);
    });
  }

  /** Serves those who wait, in order: who can pass does, who can't in time is denied, the rest go on waiting. */
  #serveQueue(state: KeyState, answered: boolean, now: Milliseconds): void {
    const waiters = state.waiters;
    if (waiters === undefined) return;
    let blockedBy: Verdict | undefined;
    for (const waiter of waiters) {
      if (answered) waiter.answers += 1;
      // Once one has to go on waiting, those behind it are only looked at for their deadlines.
      const verdict: Verdict = blockedBy ?? this.#judge.judge(state, waiter.cost, waiter.micro, now, true);
      if (isAllowed(verdict)) {
        this.#count(state, verdict, waiter.cost);
        this.#settle(state, waiter, this.#decision(state, verdict, waiter.cost, now));
      } else if (this.#hopeless(state, waiter, verdict, now)) {
        this.#denied(state, verdict, waiter.cost, now);
        this.#settle(state, waiter, this.#decision(state, verdict, waiter.cost, now));
      } else {
        blockedBy ??= verdict;
      }
    }
    this.#await(state, now);
  }

  #hopeless(state: KeyState, waiter: Waiter, verdict: Verdict, now: Milliseconds): boolean {
    if (now >= waiter.deadline) return true;
    if (verdict === VERDICT.ceilingDegraded && !waiter.patient) return true;
    const blocked = (state.account?.blockedUntil ?? 0) > now;
    if (!waiter.patient)
      return (
        !awaitsLease(verdict) ||
        (waiter.answers > 0 && blocked && !this.#retrying(state)) ||
        waiter.answers >= ANSWERS_AWAITED
      );
    if (awaitsLease(verdict) && !blocked) return false;
    const wait = this.#judge.wait(state, verdict, waiter.cost, now);
    return wait === undefined || now + wait > waiter.deadline;
  }

  /** A call has failed and will be made again soon: not an answer. */
  #retrying(state: KeyState): boolean {
    return state.account !== undefined && state.account.failures > 0;
  }

  /** Tells the keeper what those who wait need now, and sees to it that the queue is looked at again in time. */
  #await(state: KeyState, now: Milliseconds): void {
    const { account, terms, waiters } = state;
    const { local } = terms;
    let need = 0;
    let head = 0;
    let level = local === undefined ? Number.POSITIVE_INFINITY : levelAt(state, local, now);
    let soonest = Number.POSITIVE_INFINITY;
    for (const waiter of waiters ?? []) {
      if (waiter.deadline < soonest) soonest = waiter.deadline;
      // Tokens leased for one whom the local bucket holds back would die in the wallet.
      if (level < waiter.cost) {
        if (local !== undefined && head === 0) {
          soonest = Math.min(soonest, now + this.#judgeLocalWait(state, waiter.cost, now));
        }
        level = 0;
        continue;
      }
      level -= waiter.cost;
      need += waiter.micro;
      if (head === 0) head = waiter.micro;
    }
    if (account !== undefined) {
      account.waiting = need;
      account.waitingHead = head;
      if (need > 0) this.#keeper.waitersChanged(account, now);
      if (need > 0 && this.#keeper.unreachable(account)) soonest = Math.min(soonest, now + this.#keeper.probeWait(now));
    }
    if (soonest < Number.POSITIVE_INFINITY) this.#wakes.wakeBy(state, soonest);
  }

  #judgeLocalWait(state: KeyState, cost: Tokens, now: Milliseconds): Milliseconds {
    return this.#judge.wait(state, VERDICT.localEmpty, cost, now) ?? 0;
  }

  #settle(state: KeyState, waiter: Waiter, decision: Decision): void {
    this.#leave(state, waiter);
    waiter.settle(decision, decision.allowed ? 'allowed' : 'denied');
  }

  #leave(state: KeyState, waiter: Waiter): void {
    if (state.waiters?.delete(waiter)) this.#waiting -= 1;
  }
}

const CLOSED = { allowed: false, limitedBy: 'policy', reason: 'closed', retryAfterMs: undefined } as const;

function* accountsOf(states: Iterable<KeyState>): Iterable<Account> {
  for (const { account } of states) if (account !== undefined) yield account;
}
