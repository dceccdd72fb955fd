import { ClosedError, InvalidCostError } from '../errors.js';
import type { Account } from '../lease/account.js';
import type { Keeper } from '../lease/keeper.js';
import type { WakeQueue } from '../lease/wake-queue.js';
import { liveBalance } from '../lease/wallet.js';
import type { Policy } from '../policy/policy.js';
import type { Observer, PolicyGauges } from '../telemetry/observer.js';
import type { Time } from '../time.js';
import { MICRO, type MicroTokens, type Milliseconds, type Tokens } from '../units.js';
import { type AcquireOptions, checkAcquireOptions } from './acquire-options.js';
import { Clerk } from './clerk.js';
import { type Decision, isAllowed, VERDICT, type Verdict } from './decision.js';
import { ATTEMPT, type Attempt, Judge } from './judge.js';
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
  readonly #time: Time;
  readonly #judge: Judge;
  readonly #clerk: Clerk;
  readonly #room: WaitingRoom;
  readonly #keys: KeyTable;
  #lastNow: Milliseconds = Number.NEGATIVE_INFINITY;
  #closed = false;
  /** Whether the default cost needs no check. */
  #unitFits: boolean;

  /** @internal Made by `createLimiter`. */
  constructor(parts: PolicyLimiterParts) {
    this.#owner = parts.owner;
    this.#keeper = parts.keeper;
    this.#time = parts.time;
    this.#judge = new Judge(parts.owner, parts.keeper);
    this.#clerk = new Clerk(parts.owner, parts.keeper, parts.observer, this.#judge);
    this.#unitFits = parts.owner.costs.unitFits;
    this.#room = new WaitingRoom({
      ...parts,
      judge: this.#judge,
      now: () => this.#now(),
      policyName: parts.owner.policy.name,
      decided: (state, verdict, caller, ahead, now) => this.#clerk.decided(state, verdict, caller, ahead, now),
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
    const verdict = this.#attempt(state, cost, micro, now, ATTEMPT.only);
    if (verdict > VERDICT.allowedDegraded) {
      return this.#clerk.denied(state, verdict, cost, micro, state.waiters?.micro ?? 0, now);
    }
    this.#clerk.allowed(state, verdict, cost);
    return true;
  }

  /** As {@link tryAcquire}, answered with what to do next. */
  decide(key: string, cost: Tokens = 1): Decision {
    const micro = this.#checkCost(key, cost);
    const now = this.#now();
    const state = this.#keys.find(key, now);
    const verdict = this.#attempt(state, cost, micro, now, ATTEMPT.only);
    return this.#clerk.decided(state, verdict, { cost, micro }, state.waiters?.micro ?? 0, now);
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
    this.#room.serve(state, false, now);
    this.#keys.review(state, now);
  }

  /** @internal The store has answered for an account, or can't. */
  settled(account: Account): void {
    const state = this.#keys.peek(account.key);
    if (state?.account === account) this.#room.answered(state, this.#now());
  }

  /** @internal A newer version is in force: whoever holds tokens or waits must hear of it; other keys at their next call. */
  replace(policy: Policy): void {
    const now = this.#now();
    this.#owner.replace(policy, now);
    this.#unitFits = !this.#closed && this.#owner.costs.unitFits;
    for (const state of this.#keys.states()) {
      if (state.waiters || (state.account && !state.account.idle)) this.#keys.refresh(state, now);
      this.#room.serve(state, true, now);
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
    this.#unitFits = false;
    const now = this.#now();
    for (const state of this.#keys.states()) this.#room.close(state, now);
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
    this.#owner.costs.check(key, cost);
    const micro = Math.round(cost * MICRO);
    if (micro < 1 || Math.abs(micro / MICRO - cost) > cost * Number.EPSILON) throw new InvalidCostError(cost);
    return micro;
  }

  /** One attempt of a caller that comes now: those who wait already come first. */
  #attempt(state: KeyState, cost: Tokens, micro: MicroTokens, now: Milliseconds, attempt: Attempt): Verdict {
    return state.waiters === undefined
      ? this.#judge.judge(state, cost, micro, now, attempt)
      : this.#judge.behind(state, cost, micro, now);
  }

  #acquire(key: string, options: AcquireOptions): Promise<Decision> {
    const { cost, maxWaitMs, signal } = checkAcquireOptions(options);
    const micro = this.#checkCost(key, cost);
    if (signal?.aborted) throw signal.reason;
    const now = this.#now();
    const state = this.#keys.find(key, now);
    const ahead = state.waiters?.micro ?? 0;
    // A shadow policy must not hold up what it lets pass: it waits for the store's answer, but never for tokens.
    const patience = state.terms.mode === 'shadow' && maxWaitMs !== 0 ? undefined : maxWaitMs;
    const verdict = this.#attempt(state, cost, micro, now, patience === 0 ? ATTEMPT.only : ATTEMPT.first);
    if (isAllowed(verdict) || !this.#room.worthwhile(state, verdict, micro, patience, now)) {
      return Promise.resolve(this.#clerk.decided(state, verdict, { cost, micro }, ahead, now));
    }
    return this.#room.enter(state, cost, micro, patience, signal, now);
  }
}

function* accountsOf(states: Iterable<KeyState>): Iterable<Account> {
  for (const { account } of states) if (account !== undefined) yield account;
}
