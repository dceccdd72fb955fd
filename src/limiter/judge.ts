import { levelAt, take, waitFor } from '../algorithm/token-bucket.js';
import type { Account } from '../lease/account.js';
import type { Keeper } from '../lease/keeper.js';
import { type CeilingTerms, microTokensPerSecond } from '../policy/policy.js';
import { MICRO, type MicroTokens, type Milliseconds, type Tokens } from '../units.js';
import { VERDICT, type Verdict } from './decision.js';
import type { KeyState } from './key-state.js';
import type { PolicyState } from './policy-state.js';
import { newShareBucket, shareWait, takeShare } from './share-bucket.js';

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

  /** `again`: this attempt has been counted as demand before. */
  judge(state: KeyState, cost: Tokens, micro: MicroTokens, now: Milliseconds, again: boolean): Verdict {
    const { local } = state.terms;
    let level = 0;
    if (local !== undefined) {
      level = levelAt(state, local, now);
      if (level < cost) return cost > local.burst ? VERDICT.localCostAboveBurst : VERDICT.localEmpty;
    }
    const { account } = state;
    let verdict: Verdict = VERDICT.allowed;
    if (account !== undefined) {
      if (!again) account.attempted += micro;
      if (account.balance >= micro && now < account.endsAt) {
        account.balance -= micro;
        if (account.balance < account.lowWater) this.#keeper.renew(account, now);
      } else {
        verdict = this.#dry(state, account, cost, micro, now);
        if (verdict > VERDICT.allowedDegraded) return verdict;
      }
    }
    if (local !== undefined) take(state, level, cost, now);
    return verdict;
  }

  /** Milliseconds until this attempt could pass, as far as this process can know; undefined: waiting can't help. */
  wait(state: KeyState, verdict: Verdict, cost: Tokens, now: Milliseconds): Milliseconds | undefined {
    const { account, terms } = state;
    switch (verdict) {
      case VERDICT.localEmpty:
        return terms.local ? waitFor(state, terms.local, cost, now) : 0;
      case VERDICT.ceilingEmpty:
      case VERDICT.ceilingCold:
      case VERDICT.ceilingExpired:
        return account ? Math.max(1, Math.ceil(Math.max(account.blockedUntil, account.retryAt) - now)) : 1;
      case VERDICT.ceilingDegraded: {
        const rate = this.#shareRate(terms.ceiling);
        if (state.share && rate > 0) return shareWait(state.share, cost, rate, now);
        return this.#keeper.probeWait(now);
      }
      default:
        return undefined;
    }
  }

  /** The wallet has too little: fetch at once where the store is in this process, else say which state this is. */
  #dry(state: KeyState, account: Account, cost: Tokens, micro: MicroTokens, now: Milliseconds): Verdict {
    const terms = account.terms.ceiling;
    if (terms !== undefined && micro > terms.burst) return VERDICT.ceilingCostAboveBurst;
    if (this.#keeper.missed(account, micro, now)) {
      account.balance -= micro;
      return VERDICT.allowed;
    }
    if (this.#keeper.unreachable(account)) return this.#outage(state, account, cost, now);
    state.share = undefined;
    if (!account.granted) return VERDICT.ceilingCold;
    return account.lapsed || (account.balance > 0 && now >= account.endsAt)
      ? VERDICT.ceilingExpired
      : VERDICT.ceilingEmpty;
  }

  /** No tokens and no store: the policy says what then. */
  #outage(state: KeyState, account: Account, cost: Tokens, now: Milliseconds): Verdict {
    const { policy, counters } = this.#owner;
    if (policy.outage.mode === 'deny') return VERDICT.ceilingDegraded;
    if (policy.outage.mode === 'share') {
      const rate = this.#shareRate(state.terms.ceiling);
      if (rate === 0) return VERDICT.ceilingDegraded;
      // The first to reach the store again pays for the whole fleet from its last reply on. Without one ever: from the start.
      if (account.outageSince === 0) account.outageSince = Math.max(1, account.clock.lastReply);
      state.share ??= newShareBucket(Math.max(account.endsAt, this.#keeper.unreachableSince(now)));
      if (!takeShare(state.share, cost, rate, now)) return VERDICT.ceilingDegraded;
    }
    counters.tokensUnleased += cost;
    return VERDICT.allowedDegraded;
  }

  /** Tokens a millisecond one instance of the fleet may admit by itself; 0 where the fleet's size is not known. */
  #shareRate(terms: CeilingTerms | undefined): number {
    const { outage } = this.#owner.policy;
    if (outage.mode !== 'share' || terms === undefined) return 0;
    const fleet = Math.max(this.#keeper.fleetSize, outage.fleet ?? 0);
    return fleet === 0 ? 0 : microTokensPerSecond(terms) / MICRO / 1_000 / fleet;
  }
}
