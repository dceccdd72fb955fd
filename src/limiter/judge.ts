import type { Account } from '../lease/account.js';
import type { Keeper } from '../lease/keeper.js';
import { newShareBucket, shareWait, takeShare } from '../lease/share-bucket.js';
import { type CeilingTerms, isPaced, microTokensPerSecond } from '../policy/policy.js';
import { MICRO, type MicroTokens, type Milliseconds, type Tokens } from '../units.js';
import { VERDICT, type Verdict } from './decision.js';
import type { KeyState } from './key-state.js';
import { charge, levelOf, waitOf } from './local-tier.js';
import type { PolicyState } from './policy-state.js';

/** What becomes of a caller whose attempt does not pass. */
export const ATTEMPT = {
  /** It goes away: what it lacked is fetched for the next one. */
  only: 0,
  /** It may wait, and then says itself what it needs. */
  first: 1,
  /** It has waited: what it needs is known, and it has been counted as demand. */
  again: 2,
  /** It has waited for a slot of its ceiling, and that has come. */
  departs: 3,
} as const;

export type Attempt = (typeof ATTEMPT)[keyof typeof ATTEMPT];

/**
 * Decides one attempt: looks at every tier, and charges all of them or none (one call runs at a time, so nothing comes
 * between). Memory only; where the wallet runs low it leaves word with the keeper.
 */
export class Judge {
  readonly #keeper: Keeper;
  readonly #owner: PolicyState;

  constructor(owner: PolicyState, keeper: Keeper) {
    this.#owner = owner;
    this.#keeper = keeper;
  }

  judge(state: KeyState, cost: Tokens, micro: MicroTokens, now: Milliseconds, attempt: Attempt): Verdict {
    const { local, mode } = state.terms;
    if (mode === 'deny') return VERDICT.policyDenies;
    if (mode === 'allow') return VERDICT.policyAllows;
    if (now < state.blockEnd) return this.never(state, cost, micro) ?? VERDICT.blocked;
    if (isPaced(state.terms) && attempt !== ATTEMPT.departs) return this.never(state, cost, micro) ?? VERDICT.paced;
    let level = 0;
    if (local !== undefined) {
      level = levelOf(state, local, now);
      if (level < cost) return cost > local.burst ? VERDICT.localCostAboveBurst : VERDICT.localEmpty;
    }
    const { account } = state;
    let verdict: Verdict = VERDICT.allowed;
    if (account !== undefined) {
      if (attempt !== ATTEMPT.again) account.attempted += micro;
      if (account.balance >= micro && now < account.endsAt) {
        account.balance -= micro;
        if (account.balance < account.lowWater) this.#keeper.renew(account, now);
      } else {
        verdict = this.#dry(state, account, cost, micro, now, attempt);
        if (verdict > VERDICT.allowedDegraded) return verdict;
      }
    }
    if (local !== undefined) charge(state, level, cost, micro, now, attempt >= ATTEMPT.again);
    return verdict;
  }

  /** The verdict for one who would have to overtake those who wait: nothing is looked at but whether it ever can pass. */
  behind(state: KeyState, cost: Tokens, micro: MicroTokens, now: Milliseconds): Verdict {
    const { local } = state.terms;
    const never = this.never(state, cost, micro);
    if (never !== undefined) return never;
    if (now < state.blockEnd) return VERDICT.blocked;
    const first = state.waiters?.first;
    if (local !== undefined && first !== undefined && levelOf(state, local, now) < first.cost)
      return VERDICT.localEmpty;
    const { account } = state;
    if (account === undefined) return VERDICT.localEmpty;
    account.attempted += micro;
    if (this.#keeper.unreachable(account)) return VERDICT.ceilingDegraded;
    return account.granted ? VERDICT.ceilingEmpty : VERDICT.ceilingCold;
  }

  /** Why this cost can't pass under the terms in force, however long it waits; undefined: it can. */
  never(state: KeyState, cost: Tokens, micro: MicroTokens): Verdict | undefined {
    const { local, ceiling, mode } = state.terms;
    if (mode === 'deny') return VERDICT.policyDenies;
    if (local !== undefined && cost > local.burst) return VERDICT.localCostAboveBurst;
    if (ceiling !== undefined && micro > ceiling.burst) return VERDICT.ceilingCostAboveBurst;
    return undefined;
  }

  /**
   * Milliseconds until an attempt that got `verdict` could pass if nobody but those `ahead` of it (micro-tokens) took
   * any, as far as this process can know; undefined: waiting can't help.
   */
  wait(
    state: KeyState,
    verdict: Verdict,
    micro: MicroTokens,
    ahead: MicroTokens,
    now: Milliseconds,
  ): Milliseconds | undefined {
    const { account, terms, pace } = state;
    const ofPace =
      verdict === VERDICT.ceilingEmpty || verdict === VERDICT.queueFull || verdict === VERDICT.ceilingDegraded;
    if (pace && ofPace && isPaced(terms)) return Math.max(1, Math.ceil(pace.roomAt - now));
    switch (verdict) {
      case VERDICT.localEmpty:
        return terms.local ? waitOf(state, terms.local, micro, ahead, now) : 1;
      case VERDICT.ceilingEmpty:
      case VERDICT.ceilingCold:
      case VERDICT.ceilingExpired:
        return account ? this.#leaseWait(account, terms.ceiling, ahead + micro, now) : 1;
      case VERDICT.ceilingDegraded: {
        const rate = this.shareRate(terms.ceiling);
        if (account?.share && rate > 0) return shareWait(account.share, (ahead + micro) / MICRO, rate, now);
        return account ? this.#keeper.probeWait(account, now) : 1;
      }
      case VERDICT.queueFull:
        return this.wait(state, account ? VERDICT.ceilingEmpty : VERDICT.localEmpty, micro, ahead, now);
      case VERDICT.blocked: {
        if (state.blockEnd === Number.POSITIVE_INFINITY) return undefined;
        // By its end there may still be too little.
        const tokens = this.wait(state, VERDICT.localEmpty, micro, ahead, now) ?? 1;
        const leased = this.wait(state, VERDICT.ceilingEmpty, micro, ahead, now) ?? 1;
        return Math.max(Math.ceil(state.blockEnd - now), tokens, leased);
      }
      default:
        return undefined;
    }
  }

  /** Until a need can be met, as the store has said; a store in this process that has not been asked can be looked at. */
  #leaseWait(account: Account, terms: CeilingTerms | undefined, micro: MicroTokens, now: Milliseconds): Milliseconds {
    let due = dueAt(account, terms, micro, now);
    if (due <= now && terms !== undefined) {
      const left = this.#keeper.leftNow(account);
      if (left !== undefined) due = now + ((micro - account.balance - left) / microTokensPerSecond(terms)) * 1_000;
    }
    return Math.max(1, Math.ceil(due - now));
  }

  /** The wallet has too little: fetch at once where the store is in this process, else say which state this is. */
  #dry(
    state: KeyState,
    account: Account,
    cost: Tokens,
    micro: MicroTokens,
    now: Milliseconds,
    attempt: Attempt,
  ): Verdict {
    const terms = account.terms.ceiling;
    if (terms !== undefined && micro > terms.burst) return VERDICT.ceilingCostAboveBurst;
    // Where the store has said that asking is useless nothing is fetched, and nothing noted for the next one.
    const blocked = account.blockedFor(micro, now);
    if (!blocked && this.#keeper.fetchNow(account, micro, attempt === ATTEMPT.again, now)) {
      account.balance -= micro;
      return VERDICT.allowed;
    }
    const unreachable = this.#keeper.unreachable(account);
    // One that comes to an unreachable store does not wait for it either: it is what makes the keeper try again.
    if (!blocked && (attempt === ATTEMPT.only || (attempt === ATTEMPT.first && unreachable)))
      this.#keeper.missed(account, micro, now);
    if (unreachable) return this.#outage(state, account, cost, now);
    if (!account.granted) return VERDICT.ceilingCold;
    const expired = account.lapsed || (account.balance > 0 && now >= account.endsAt);
    return expired ? VERDICT.ceilingExpired : VERDICT.ceilingEmpty;
  }

  /** No tokens and no store: the policy says what then. */
  #outage(state: KeyState, account: Account, cost: Tokens, now: Milliseconds): Verdict {
    const { policy, counters } = this.#owner;
    if (policy.outage.mode === 'deny') return VERDICT.ceilingDegraded;
    if (policy.outage.mode === 'share') {
      const rate = this.shareRate(state.terms.ceiling);
      if (rate === 0) return VERDICT.ceilingDegraded;
      if (account.outageSince === 0) {
        // The first to reach the store again pays for the whole fleet from its last reply on. Without one ever: from the start.
        account.outageSince = Math.max(1, account.clock.lastReply);
        account.share = newShareBucket(Math.max(account.endsAt, this.#keeper.unreachableSince(now)));
      }
      if (!account.share || !takeShare(account.share, cost, rate, now)) return VERDICT.ceilingDegraded;
    }
    counters.tokensUnleased += cost;
    return VERDICT.allowedDegraded;
  }

  /** Tokens a millisecond one instance of the fleet may admit by itself; 0 where the fleet's size is not known. */
  shareRate(terms: CeilingTerms | undefined): number {
    const { outage } = this.#owner.policy;
    if (outage.mode !== 'share' || terms === undefined) return 0;
    const fleet = Math.max(this.#keeper.fleetSize, outage.fleet ?? 0);
    return fleet === 0 ? 0 : microTokensPerSecond(terms) / MICRO / 1_000 / fleet;
  }
}

/** When the store said that a need can be met; more than that need is earned after it, at the ceiling's rate. */
function dueAt(account: Account, terms: CeilingTerms | undefined, micro: MicroTokens, now: Milliseconds): Milliseconds {
  if (!account.blockedFor(micro, now)) return now;
  const due = Math.max(account.blockedUntil, account.retryAt);
  const more = micro - account.balance - account.unmet;
  if (account.unmet === 0 || more <= 0 || terms === undefined) return due;
  return due + (more / microTokensPerSecond(terms)) * 1_000;
}
