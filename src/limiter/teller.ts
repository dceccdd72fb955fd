import type { CeilingStore } from '../ceiling/ceiling-store.js';
import { ClosedError } from '../errors.js';
import type { Keeper } from '../lease/keeper.js';
import type { WakeQueue } from '../lease/wake-queue.js';
import { isPaced } from '../policy/policy.js';
import type { Observer } from '../telemetry/observer.js';
import type { Random, Time } from '../time.js';
import { MICRO, type MicroTokens, type Milliseconds, type Tokens } from '../units.js';
import { type AcquireOptions, type CheckedOptions, checkAcquireOptions } from './acquire-options.js';
import { Clerk } from './clerk.js';
import { microTokensOf } from './cost-limits.js';
import { type Decision, isAllowed, VERDICT, type Verdict } from './decision.js';
import { ATTEMPT, type Attempt, Judge } from './judge.js';
import type { KeyState } from './key-state.js';
import type { KeyTable } from './key-table.js';
import { pacedRoom } from './on-demand.js';
import type { PacedRoom } from './paced-room.js';
import { PlainPath } from './plain-path.js';
import type { PolicyState } from './policy-state.js';
import { WaitingRoom } from './waiting-room.js';

/** What a teller is made of. */
export interface TellerParts {
  readonly owner: PolicyState;
  readonly keeper: Keeper;
  readonly observer: Observer;
  readonly time: Time;
  readonly random: Random;
  readonly store: CeilingStore;
  readonly holder: string;
  readonly deadlineMs: Milliseconds;
  /** Told when the store knows newer terms than this instance. */
  readonly outdated: () => void;
  readonly wakes: WakeQueue<KeyState>;
}

/** Where a teller looks for the key that it is asked for. */
export interface KeyFinder {
  /** Where the key lies; undefined: that is not known. */
  slotOf(key: string): number | undefined;
  /**
   * Its state. `slot` is what {@link slotOf} has just said.
   *
   * @param kept whether the state of a new key is kept, as somebody may come to wait for it
   */
  open(key: string, slot: number | undefined, now: Milliseconds, kept?: boolean): KeyState;
}

/**
 * Serves the callers of one policy, whichever way they named their key: asks the judge, has the clerk write it down, and
 * shows to the waiting room whom that can help. A call reads the clock once, with {@link now}, checks its cost with
 * {@link micro}, finds the state of its key, and passes all of them on.
 */
export class Teller {
  readonly room: WaitingRoom;
  /** There once somebody has asked for a slot of a leaky bucket. */
  paced: PacedRoom | undefined;
  readonly plain: PlainPath;
  readonly owner: PolicyState;
  readonly keeper: Keeper;
  readonly #parts: TellerParts;
  readonly judge: Judge;
  readonly clerk: Clerk;
  #closed = false;
  /** Whether the default cost needs no check. */
  #unitFits: boolean;

  constructor(parts: TellerParts, { pages, kept: accounts }: Pick<KeyTable, 'pages' | 'kept'>) {
    const { owner, keeper, observer } = parts;
    this.owner = owner;
    this.#parts = parts;
    this.keeper = keeper;
    this.judge = new Judge(owner, keeper);
    this.clerk = new Clerk(owner, keeper, observer, this.judge);
    this.#unitFits = owner.costs.unitFits;
    this.plain = new PlainPath({ ...parts, pages, accounts });
    this.room = new WaitingRoom({
      ...parts,
      judge: this.judge,
      now: () => this.now(),
      policyName: owner.policy.name,
    });
  }

  /** The clock, held where it is should it ever go back: no bucket is paid twice for the same time. */
  now(): Milliseconds {
    return this.plain.now();
  }

  /**
   * The micro-tokens of a cost, which has then been checked.
   *
   * @throws {ClosedError} {@link InvalidCostError} {@link CostAboveBurstError}
   */
  micro(key: string, cost: Tokens): MicroTokens {
    return cost === 1 && this.#unitFits ? MICRO : this.#checkCost(key, cost);
  }

  /** Where the plain path has no answer. */
  tryAcquire(state: KeyState, cost: Tokens, micro: MicroTokens, now: Milliseconds): boolean {
    const verdict = this.#attempt(state, cost, micro, now, ATTEMPT.only);
    if (verdict > VERDICT.allowedDegraded) {
      return this.clerk.denied(state, verdict, cost, micro, state.waiters?.micro ?? 0, now);
    }
    this.clerk.allowed(state, verdict, cost);
    return true;
  }

  /** Charges the key that `keys` knows by this name, or says why not. */
  decide(key: string, cost: Tokens, keys: KeyFinder): Decision {
    const micro = this.micro(key, cost);
    const now = this.now();
    const slot = keys.slotOf(key);
    if (slot !== undefined && this.plain.allows(slot, cost, micro)) return this.plain.told();
    return this.decideClosely(keys.open(key, slot, now), cost, micro, now);
  }

  decideClosely(state: KeyState, cost: Tokens, micro: MicroTokens, now: Milliseconds): Decision {
    const verdict = this.#attempt(state, cost, micro, now, ATTEMPT.only);
    return this.clerk.decided(state, verdict, cost, micro, state.waiters?.micro ?? 0, now);
  }

  /** The same for one that may wait. */
  acquire(key: string, options: AcquireOptions | undefined, keys: KeyFinder): Promise<Decision> {
    try {
      const checked = checkAcquireOptions(options);
      const { cost, signal } = checked;
      const micro = this.micro(key, cost);
      if (signal?.aborted) throw signal.reason;
      const now = this.now();
      const slot = keys.slotOf(key);
      if (slot !== undefined && this.plain.allows(slot, cost, micro)) return Promise.resolve(this.plain.told());
      return this.#acquire(keys.open(key, slot, now, true), micro, checked, now);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #acquire(state: KeyState, micro: MicroTokens, options: CheckedOptions, now: Milliseconds): Promise<Decision> {
    const { cost, maxWaitMs, priority, maxQueued } = options;
    if (isPaced(state.terms) && (state.terms.mode === 'enforce' || state.terms.mode === 'shadow')) {
      this.paced ??= this.#openPaced();
      return this.paced.acquire(state, micro, options, now);
    }
    // A shadow policy must not hold up what it lets pass: it waits for the store's answer, but never for tokens.
    let patience = maxWaitMs !== 0 && state.terms.mode === 'shadow' ? undefined : maxWaitMs;
    const queue = queueOf(state);
    // Waiting is what a leaky bucket is for: its queue bounds how long.
    if (queue < Number.POSITIVE_INFINITY && maxWaitMs === undefined) patience = Number.POSITIVE_INFINITY;
    const ahead = state.waiters === undefined ? 0 : state.waiters.ahead(priority);
    const attempt = patience === 0 ? ATTEMPT.only : ATTEMPT.first;
    const verdict =
      ahead === 0 ? this.judge.judge(state, cost, micro, now, attempt) : this.judge.behind(state, cost, micro, now);
    const newcomer = { cost, micro, maxWaitMs: patience, signal: options.signal, priority };
    if (isAllowed(verdict) || !this.room.worthwhile(state, verdict, newcomer, now)) {
      return Promise.resolve(this.clerk.decided(state, verdict, cost, micro, ahead, now));
    }
    const { waiters } = state;
    if ((waiters?.size ?? 0) >= maxQueued || (waiters?.micro ?? 0) + micro > queue) {
      return Promise.resolve(this.clerk.decided(state, VERDICT.queueFull, cost, micro, ahead, now));
    }
    const deadline = now + (maxWaitMs ?? 0);
    return this.room.enter<Decision>(state, newcomer, now, (verdict, ahead, now) => {
      if (verdict !== VERDICT.paced) return this.clerk.decided(state, verdict, cost, micro, ahead, now);
      // Its ceiling has become a leaky bucket.
      const left = maxWaitMs === undefined ? undefined : Math.max(0, deadline - now);
      return this.#acquire(state, micro, { ...options, maxWaitMs: left }, now);
    });
  }

  #openPaced(): PacedRoom {
    return pacedRoom({
      ...this.#parts,
      judge: this.judge,
      clerk: this.clerk,
      now: () => this.now(),
      again: (state, micro, options, now) => this.#acquire(state, micro, options, now),
    });
  }

  /** A newer version of the policy is in force. */
  adopt(): void {
    this.plain.adopt();
    this.#unitFits = !this.#closed && this.owner.costs.unitFits;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Turns away whoever comes from now on. */
  close(): void {
    this.#closed = true;
    this.#unitFits = false;
  }

  #checkCost(key: string, cost: unknown): MicroTokens {
    if (this.#closed) throw new ClosedError();
    // First: what could never pass need not be exact.
    if (typeof cost === 'number' && cost > 0 && cost < Number.POSITIVE_INFINITY) this.owner.costs.check(key, cost);
    return microTokensOf(cost);
  }

  /** One attempt of a caller that comes now: those who wait already come first. */
  #attempt(state: KeyState, cost: Tokens, micro: MicroTokens, now: Milliseconds, attempt: Attempt): Verdict {
    return state.waiters === undefined
      ? this.judge.judge(state, cost, micro, now, attempt)
      : this.judge.behind(state, cost, micro, now);
  }
}

/** Micro-tokens' worth of callers that may wait: as many as like, but for a leaky bucket. */
function queueOf({ terms: { local } }: KeyState): MicroTokens {
  return local?.algorithm === 'leaky-bucket' ? Math.round(local.queue * MICRO) : Number.POSITIVE_INFINITY;
}
