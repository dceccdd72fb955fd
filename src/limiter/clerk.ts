import type { Keeper } from '../lease/keeper.js';
import { liveBalance } from '../lease/wallet.js';
import type { CeilingTerms } from '../policy/policy.js';
import { type AllowedWatch, NOBODY_WATCHES, type Observer } from '../telemetry/observer.js';
import { MICRO, type MicroTokens, type Milliseconds, type Tokens } from '../units.js';
import {
  type Allowed,
  type Decision,
  groundsOf,
  isAllowed,
  passesAsShadow,
  VERDICT,
  type Verdict,
} from './decision.js';
import type { Judge } from './judge.js';
import type { KeyState } from './key-state.js';
import { freshIn, levelOf } from './local-tier.js';
import type { PolicyState } from './policy-state.js';

/** Counts and shows what was decided, and writes it out as a {@link Decision} for callers that want one. */
export class Clerk {
  readonly #owner: PolicyState;
  readonly #keeper: Keeper;
  readonly #observer: Observer;
  readonly #judge: Judge;
  readonly #allowedWatch: AllowedWatch;

  constructor(owner: PolicyState, keeper: Keeper, observer: Observer, judge: Judge) {
    this.#owner = owner;
    this.#keeper = keeper;
    this.#observer = observer;
    this.#judge = judge;
    this.#allowedWatch = observer.allowedWatch ?? NOBODY_WATCHES;
  }

  /** @param ahead micro-tokens of those who are served before this caller */
  decided(
    state: KeyState,
    verdict: Verdict,
    cost: Tokens,
    micro: MicroTokens,
    ahead: MicroTokens,
    now: Milliseconds,
  ): Decision {
    if (isAllowed(verdict)) this.allowed(state, verdict, cost);
    else this.denied(state, verdict, cost, micro, ahead, now);
    return this.written(state, verdict, micro, ahead, now);
  }

  /** A decision that is not counted, or has been. */
  written(state: KeyState, verdict: Verdict, micro: MicroTokens, ahead: MicroTokens, now: Milliseconds): Decision {
    if (isAllowed(verdict)) return this.allowance(state, now);
    const { limitedBy, reason } = groundsOf(verdict, state.overflow);
    const retryAfterMs = this.#judge.wait(state, verdict, micro, ahead, now);
    const { policy, policyVersion, remaining, limit, resetAfterMs, degraded } = this.allowance(state, now);
    const shadow = passesAsShadow(state.terms.mode, verdict) ? { limitedBy, reason, retryAfterMs } : undefined;
    // Field by field: spread, as is shorter, a denial takes ten times as long, and under a flood all are denials.
    if (shadow) return { allowed: true, policy, policyVersion, remaining, limit, resetAfterMs, degraded, shadow };
    return {
      allowed: false,
      policy,
      policyVersion,
      remaining,
      limit,
      resetAfterMs,
      degraded,
      limitedBy,
      reason,
      retryAfterMs,
    };
  }

  /** What a caller that is allowed is told: what is left, of how much, and when all of it will be there again. */
  allowance(state: KeyState, now: Milliseconds): Allowed {
    const { account, terms } = state;
    const { local, ceiling, mode } = terms;
    const { name: policy, version: policyVersion } = this.#owner.policy;
    let degraded = account !== undefined && this.#keeper.unreachable(account);
    let remaining = Number.POSITIVE_INFINITY;
    let limit = remaining;
    let resetAfterMs: Milliseconds | undefined = 0;
    if (mode === 'deny') {
      // This and `allow` are answered without a look at anything.
      remaining = 0;
      limit = 0;
      resetAfterMs = undefined;
    } else if (mode !== 'allow') {
      if (local !== undefined) {
        remaining = levelOf(state, local, now);
        limit = local.burst;
        resetAfterMs = Math.ceil(freshIn(state, local, now));
      }
      if (ceiling !== undefined) limit = Math.min(limit, ceiling.burst / MICRO);
      if (ceiling !== undefined && account !== undefined) {
        const left = this.#keeper.leftNow(account);
        const held = liveBalance(account, now) + (left ?? 0) - account.debt;
        remaining = Math.min(remaining, held / MICRO);
        resetAfterMs = left === undefined ? undefined : Math.max(resetAfterMs, untilFull(ceiling, held));
      } else if (ceiling !== undefined) {
        // Paced: there is only ever a slot to wait for.
        remaining = 0;
        resetAfterMs = undefined;
        degraded = state.pace?.degraded ?? false;
      }
      const blockedFor = Math.ceil(state.blockEnd - now);
      // Nobody overtakes those who wait.
      if (state.waiters !== undefined || blockedFor > 0) remaining = 0;
      if (resetAfterMs !== undefined) resetAfterMs = Math.max(resetAfterMs, blockedFor);
      remaining = Math.max(0, Math.floor(remaining));
    }
    return { allowed: true, policy, policyVersion, remaining, limit, resetAfterMs, degraded };
  }

  allowed(state: KeyState, verdict: Verdict, cost: Tokens): void {
    const { counters } = this.#owner;
    counters.allowed += 1;
    if (verdict === VERDICT.allowedDegraded) counters.allowedDegraded += 1;
    else if (verdict === VERDICT.allowed && state.account !== undefined) counters.tokensSpent += cost;
    if (state.overflow) counters.overflow += 1;
    if (this.#allowedWatch.hasSubscribers) {
      const { name, version } = this.#owner.policy;
      const degraded = verdict === VERDICT.allowedDegraded;
      this.#observer.allowed?.({ policy: name, policyVersion: version, cost, degraded });
    }
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
    const shadow = passesAsShadow(state.terms.mode, verdict);
    if (verdict === VERDICT.blocked) counters.deniedBlocked += 1;
    if (shadow) {
      counters.shadowDenied += 1;
      counters.allowed += 1;
    } else if (verdict >= VERDICT.policyDenies && verdict !== VERDICT.paced) counters.deniedPolicy += 1;
    else if (verdict <= VERDICT.localCostAboveBurst) counters.deniedLocal += 1;
    else counters.deniedCeiling += 1;
    if (state.overflow) counters.overflow += 1;
    if (this.#observer.watchesDenials()) {
      this.#observer.denied({
        policy: policy.name,
        policyVersion: policy.version,
        ...groundsOf(verdict, state.overflow),
        retryAfterMs: this.#judge.wait(state, verdict, micro, ahead, now),
        cost,
        shadow,
      });
    }
    return shadow;
  }
}

/** Whole milliseconds until a ceiling of which `held` is left is full again. */
function untilFull(ceiling: CeilingTerms, held: MicroTokens): Milliseconds {
  return Math.ceil((ceiling.burst - held) / ((ceiling.rateNum / ceiling.rateDen) * 1_000));
}
