import { levelAt } from '../algorithm/token-bucket.js';
import type { Keeper } from '../lease/keeper.js';
import { liveBalance } from '../lease/wallet.js';
import type { Observer } from '../telemetry/observer.js';
import { MICRO, type MicroTokens, type Milliseconds, type Tokens } from '../units.js';
import { type Decision, type Denial, groundsOf, isAllowed, VERDICT, type Verdict } from './decision.js';
import type { Judge } from './judge.js';
import type { KeyState } from './key-state.js';
import type { PolicyState } from './policy-state.js';

/** Whose cost a verdict is about. */
export interface Caller {
  readonly cost: Tokens;
  readonly micro: MicroTokens;
}

/** Counts and shows what was decided, and writes it out as a {@link Decision} for callers that want one. */
export class Clerk {
  readonly #owner: PolicyState;
  readonly #keeper: Keeper;
  readonly #observer: Observer;
  readonly #judge: Judge;

  constructor(owner: PolicyState, keeper: Keeper, observer: Observer, judge: Judge) {
    this.#owner = owner;
    this.#keeper = keeper;
    this.#observer = observer;
    this.#judge = judge;
  }

  /** @param ahead micro-tokens of those who are served before this caller */
  decided(state: KeyState, verdict: Verdict, caller: Caller, ahead: MicroTokens, now: Milliseconds): Decision {
    const { cost, micro } = caller;
    if (isAllowed(verdict)) {
      this.allowed(state, verdict, cost);
      return { allowed: true, ...this.#head(state, now) };
    }
    const passes = this.denied(state, verdict, cost, micro, ahead, now);
    const denial = this.#denial(state, verdict, micro, ahead, now);
    if (passes) return { allowed: true, ...this.#head(state, now), shadow: denial };
    return { allowed: false, ...this.#head(state, now), ...denial };
  }

  allowed(state: KeyState, verdict: Verdict, cost: Tokens): void {
    const { counters } = this.#owner;
    counters.allowed += 1;
    if (verdict === VERDICT.allowedDegraded) counters.allowedDegraded += 1;
    else if (verdict === VERDICT.allowed && state.account !== undefined) counters.tokensSpent += cost;
    if (state.overflow) counters.overflow += 1;
  }

  /** Counts and shows a denial; answers whether the call passes all the same, as under a shadow policy. */
  denied(
    state: KeyState,
    verdict: Verdict,
    cost: Tokens,
    micro: MicroTokens,
    ahead: MicroTokens,
    now: Milliseconds,
  ): boolean {
    const { counters, policy } = this.#owner;
    const shadow = state.terms.mode === 'shadow' && verdict !== VERDICT.closed;
    if (shadow) {
      counters.shadowDenied += 1;
      counters.allowed += 1;
    } else if (verdict >= VERDICT.policyDenies) counters.deniedPolicy += 1;
    else if (verdict <= VERDICT.localCostAboveBurst) counters.deniedLocal += 1;
    else counters.deniedCeiling += 1;
    if (state.overflow) counters.overflow += 1;
    if (this.#observer.watchesDenials()) {
      const denial = this.#denial(state, verdict, micro, ahead, now);
      this.#observer.denied({ policy: policy.name, policyVersion: policy.version, ...denial, cost, shadow });
    }
    return shadow;
  }

  #denial(state: KeyState, verdict: Verdict, micro: MicroTokens, ahead: MicroTokens, now: Milliseconds): Denial {
    return {
      ...groundsOf(verdict, state.overflow),
      retryAfterMs: this.#judge.wait(state, verdict, micro, ahead, now),
    };
  }

  #head(state: KeyState, now: Milliseconds) {
    const { policy } = this.#owner;
    return {
      policy: policy.name,
      policyVersion: policy.version,
      ...this.#room(state, now),
      degraded: state.account !== undefined && this.#keeper.unreachable(state.account),
    };
  }

  /** What is left, of how much, and when all of it will be there again. */
  #room(state: KeyState, now: Milliseconds): Pick<Decision, 'remaining' | 'limit' | 'resetAfterMs'> {
    const { local, ceiling, mode } = state.terms;
    if (mode === 'deny') return { remaining: 0, limit: 0, resetAfterMs: undefined };
    if (mode === 'allow') {
      return { remaining: Number.POSITIVE_INFINITY, limit: Number.POSITIVE_INFINITY, resetAfterMs: 0 };
    }
    let remaining = Number.POSITIVE_INFINITY;
    let limit = Number.POSITIVE_INFINITY;
    let resetAfterMs: Milliseconds | undefined = 0;
    if (local) {
      remaining = levelAt(state, local, now);
      limit = local.burst;
      resetAfterMs = Math.ceil((local.burst - remaining) / local.ratePerMs);
    }
    const { account } = state;
    if (ceiling && account) {
      const left = this.#keeper.leftNow(account);
      const held = liveBalance(account, now) + (left ?? 0);
      remaining = Math.min(remaining, held / MICRO);
      limit = Math.min(limit, ceiling.burst / MICRO);
      const perMs = (ceiling.rateNum / ceiling.rateDen) * 1_000;
      resetAfterMs = left === undefined ? undefined : Math.max(resetAfterMs, Math.ceil((ceiling.burst - held) / perMs));
    }
    // Nobody overtakes those who wait.
    return { remaining: state.waiters ? 0 : Math.floor(remaining), limit, resetAfterMs };
  }
}
