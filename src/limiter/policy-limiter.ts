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
import { type Decision, type Denial, isAllowed, limitedBy, reasonOf, VERDICT, type Verdict } from './decision.js';
import { Judge } from './judge.js';
import type { KeyState } from './key-state.js';
import { KeyTable } from './key-table.js';
import type { PolicyState } from './policy-state.js';
import { WaitingRoom } from './waiting-room.js';

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
  readonly #judge: Judge;
  readonly #room: WaitingRoom;
  readonly #keys: KeyTable;
  #lastNow: Milliseconds = Number.NEGATIVE_INFINITY;
  #closed = false;

  /** @internal Made by `createLimiter`. */
  constructor(parts: PolicyLimiterParts) {
    this.#owner = parts.owner;
    this.#keeper = parts.keeper;
    this.#observer = parts.observer;
    this.#time = parts.time;
    this.#judge = new Judge(parts.owner, parts.keeper);
    this.#room = new WaitingRoom({
      ...parts,
      judge: this.#judge,
      now: () => this.#now(),
      policyName: parts.owner.policy.name,
      decided: (state, verdict, cost, now) => this.#decided(state, verdict, cost, now),
    });
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
    if (verdict > VERDICT.allowedDegraded) return this.#denied(state, verdict, cost, now);
    this.#allowed(state, verdict, cost);
    return true;
  }

  /** As {@link tryAcquire}, answered with what to do next. */
  decide(key: string, cost: Tokens = 1): Decision {
    const micro = this.#checkCost(key, cost);
    const now = this.#now();
    const state = this.#keys.find(key, now);
    return this.#decided(state, this.#attempt(state, cost, micro, now), cost, now);
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

  /** @internal Woken for a key: a bucket has refilled, a deadline has come, or it may have gone unused. */
  woken(state: KeyState): void {
    const now = this.#now();
    if (hasWaiters(state)) this.#room.serve(state, false, now);
    this.#keys.review(state, now);
  }

  /** @internal The store has answered for an account, or can't. */
  settled(account: Account): void {
    const state = this.#keys.peek(account.key);
    if (state?.account === account && hasWaiters(state)) this.#room.serve(state, true, this.#now());
  }

  /** @internal A newer version is in force: whoever holds tokens or waits must hear of it; other keys at their next call. */
  policyChanged(): void {
    const now = this.#now();
    for (const state of this.#keys.states()) {
      const holds = state.account !== undefined && state.account.balance > 0;
      if (holds || hasWaiters(state)) this.#keys.refresh(state, now);
      if (hasWaiters(state)) this.#room.serve(state, false, now);
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
      waiting: this.#room.size,
      degraded: this.#keeper.degraded && policy.terms.ceiling !== undefined,
    };
  }

  /** @internal Answers whoever waits, and turns away whoever comes. */
  close(): void {
    this.#closed = true;
    const now = this.#now();
    for (const state of this.#keys.states()) {
      for (const waiter of state.waiters ?? []) {
        waiter.settle({
          ...this.#head(state, now),
          allowed: false,
          limitedBy: 'policy',
          reason: 'closed',
          retryAfterMs: undefined,
        });
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

  /** One attempt of a caller that comes now: those who wait already come first. */
  #attempt(state: KeyState, cost: Tokens, micro: MicroTokens, now: Milliseconds): Verdict {
    const { mode } = state.terms;
    if (mode === 'deny') return VERDICT.policyDenies;
    if (mode === 'allow') return VERDICT.allowed;
    return hasWaiters(state) ? this.#behind(state, micro, now) : this.#judge.judge(state, cost, micro, now, false);
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

  /** Counts and shows what was decided, and answers it. */
  #decided(state: KeyState, verdict: Verdict, cost: Tokens, now: Milliseconds): Decision {
    if (isAllowed(verdict)) {
      this.#allowed(state, verdict, cost);
      return { allowed: true, ...this.#head(state, now) };
    }
    const shadow = this.#denied(state, verdict, cost, now);
    const denial = this.#denial(state, verdict, cost, now);
    if (shadow) return { allowed: true, ...this.#head(state, now), shadow: denial };
    return { allowed: false, ...this.#head(state, now), ...denial };
  }

  #allowed(state: KeyState, verdict: Verdict, cost: Tokens): void {
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

  #head(state: KeyState, now: Milliseconds) {
    const { policy } = this.#owner;
    return {
      policy: policy.name,
      policyVersion: policy.version,
      remaining: this.#remaining(state, now),
      degraded: state.account !== undefined && this.#keeper.unreachable(state.account),
    };
  }

  #remaining(state: KeyState, now: Milliseconds): Tokens {
    const { local, mode } = state.terms;
    if (mode === 'deny') return 0;
    let remaining = Number.POSITIVE_INFINITY;
    if (local !== undefined) remaining = levelAt(state, local, now);
    if (state.account !== undefined) remaining = Math.min(remaining, liveBalance(state.account, now) / MICRO);
    return mode === 'allow' ? Number.POSITIVE_INFINITY : Math.floor(remaining);
  }

  #acquire(key: string, options: AcquireOptions): Promise<Decision> {
    const { cost, maxWaitMs, signal } = checkAcquireOptions(options);
    const micro = this.#checkCost(key, cost);
    signal?.throwIfAborted();
    const now = this.#now();
    const state = this.#keys.find(key, now);
    const verdict = this.#attempt(state, cost, micro, now);
    if (isAllowed(verdict) || !this.#room.worthwhile(state, verdict, cost, maxWaitMs, now)) {
      return Promise.resolve(this.#decided(state, verdict, cost, now));
    }
    return this.#room.enter(state, cost, micro, maxWaitMs, signal, now);
  }
}

function* accountsOf(states: Iterable<KeyState>): Iterable<Account> {
  for (const { account } of states) if (account !== undefined) yield account;
}

function hasWaiters(state: KeyState): boolean {
  return state.waiters !== undefined && state.waiters.size > 0;
}
