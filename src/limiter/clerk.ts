import { CELL, type Rows } from '../cells.js';
import type { Account } from '../lease/account.js';
import type { Keeper } from '../lease/keeper.js';
import { liveBalance } from '../lease/wallet.js';
import { type CeilingTerms, isPaced, type Terms } from '../policy/policy.js';
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

// Here, so that it is a constant to the compiler, which that of another module is not.
const { tokens: TOKENS } = CELL;

/** An {@link Allowed} while it is written. */
type Told = { -readonly [Field in keyof Allowed]: Allowed[Field] };

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
    if (passesAsShadow(state.terms.mode, verdict)) {
      const shadow = { limitedBy, reason, retryAfterMs };
      return { allowed: true, policy, policyVersion, remaining, limit, resetAfterMs, degraded, shadow };
    }
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

  /**
   * What a caller is told where its key's cells alone have decided, and have been charged, `now`: it needs no state.
   * `account` is that of its ceiling, if it has one.
   */
  plainAllowance({ cells, width }: Rows, row: number, account: Account | undefined, now: Milliseconds): Allowed {
    const { terms } = this.#owner.policy;
    const { local } = terms;
    const level = cells[row * width + TOKENS] as number;
    const freshMs = local === undefined ? 0 : Math.max(1, (local.burst - level) / local.ratePerMs);
    return this.#told(terms, level, freshMs, account, now);
  }

  /** What a caller that is allowed is told: what is left, of how much, and when all of it will be there again. */
  allowance(state: KeyState, now: Milliseconds): Allowed {
    const { account, terms } = state;
    const { local, ceiling, mode } = terms;
    // Answered without a look at anything.
    if (mode === 'deny' || mode === 'allow') return this.#boundless(mode, account);
    const level = local === undefined ? 0 : levelOf(state, local, now);
    const told = this.#told(terms, level, local === undefined ? 0 : freshIn(state, local, now), account, now);
    if (ceiling !== undefined && isPaced(terms)) {
      // There is only ever a slot to wait for.
      told.remaining = 0;
      told.limit = Math.min(told.limit, ceiling.burst / MICRO);
      told.resetAfterMs = undefined;
      told.degraded = state.pace?.degraded ?? false;
    }
    const blockedFor = Math.ceil(state.blockEnd - now);
    // Nobody overtakes those who wait.
    if (state.waiters !== undefined || blockedFor > 0) told.remaining = 0;
    if (told.resetAfterMs !== undefined) told.resetAfterMs = Math.max(told.resetAfterMs, blockedFor);
    return told;
  }

  #boundless(mode: 'deny' | 'allow', account: Account | undefined): Allowed {
    const { name: policy, version: policyVersion } = this.#owner.policy;
    const degraded = account !== undefined && this.#keeper.unreachable(account);
    const [remaining, resetAfterMs] = mode === 'deny' ? [0, undefined] : [Number.POSITIVE_INFINITY, 0];
    return { allowed: true, policy, policyVersion, remaining, limit: remaining, resetAfterMs, degraded };
  }

  #told(
    { local, ceiling }: Terms,
    level: Tokens,
    freshMs: Milliseconds,
    account: Account | undefined,
    now: Milliseconds,
  ) {
    const { name: policy, version: policyVersion } = this.#owner.policy;
    const told: Told = {
      allowed: true,
      policy,
      policyVersion,
      remaining: local === undefined ? Number.POSITIVE_INFINITY : level,
      limit: local === undefined ? Number.POSITIVE_INFINITY : local.burst,
      resetAfterMs: Math.ceil(freshMs),
      degraded: account !== undefined && this.#keeper.unreachable(account),
    };
    if (ceiling !== undefined && account !== undefined) {
      const left = this.#keeper.leftNow(account);
      const held = liveBalance(account, now) + (left ?? 0) - account.debt;
      told.remaining = Math.min(told.remaining, held / MICRO);
      told.limit = Math.min(told.limit, ceiling.burst / MICRO);
      told.resetAfterMs = left === undefined ? undefined : Math.max(Math.ceil(freshMs), untilFull(ceiling, held));
    }
    told.remaining = Math.max(0, Math.floor(told.remaining));
    return told;
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
