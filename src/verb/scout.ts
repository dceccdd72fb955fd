import type { Account } from '../lease/account.js';
import type { Keeper } from '../lease/keeper.js';
import { takeShare } from '../lease/share-bucket.js';
import { liveBalance } from '../lease/wallet.js';
import { isAllowed, VERDICT, type Verdict } from '../limiter/decision.js';
import type { KeyState } from '../limiter/key-state.js';
import { putBack as giveBack, levelOf } from '../limiter/local-tier.js';
import type { Teller } from '../limiter/teller.js';
import { isPaced } from '../policy/policy.js';
import { MICRO, type Microseconds, type MicroTokens, type Milliseconds, type Tokens } from '../units.js';

// What the judge would say, without charging or fetching anything; and how to take back what the judge has charged.

/** The verdict that an attempt of this cost would get now. */
export function look(
  { judge, keeper, owner }: Teller,
  state: KeyState,
  cost: Tokens,
  micro: MicroTokens,
  now: Milliseconds,
): Verdict {
  const { local, mode } = state.terms;
  if (mode === 'allow') return VERDICT.policyAllows;
  const never = judge.never(state, cost, micro);
  if (never !== undefined) return never;
  if (now < state.blockEnd) return VERDICT.blocked;
  if (isPaced(state.terms)) return VERDICT.paced;
  const { account } = state;
  if (local !== undefined && levelOf(state, local, now) < cost) return VERDICT.localEmpty;
  if (account === undefined) return state.waiters === undefined ? VERDICT.allowed : VERDICT.localEmpty;
  if (state.waiters === undefined && heldOrLeft(keeper, account, now) >= micro) return VERDICT.allowed;
  if (keeper.unreachable(account)) {
    if (state.waiters !== undefined) return VERDICT.ceilingDegraded;
    const { mode } = owner.policy.outage;
    if (mode === 'allow') return VERDICT.allowedDegraded;
    const rate = judge.shareRate(state.terms.ceiling);
    const earned = mode === 'share' && rate > 0 && account.share && takeShare({ ...account.share }, cost, rate, now);
    return earned ? VERDICT.allowedDegraded : VERDICT.ceilingDegraded;
  }
  if (!account.granted) return VERDICT.ceilingCold;
  const expired = account.lapsed || (account.balance > 0 && now >= account.endsAt);
  return expired ? VERDICT.ceilingExpired : VERDICT.ceilingEmpty;
}

/** Tokens that an attempt made now would get; Infinity where nothing is counted. */
export function available({ keeper }: Teller, state: KeyState, now: Milliseconds): Tokens {
  const { local, mode } = state.terms;
  if (mode === 'allow') return Number.POSITIVE_INFINITY;
  if (mode === 'deny' || isPaced(state.terms) || state.waiters !== undefined || now < state.blockEnd) return 0;
  const { account } = state;
  const inBucket = local === undefined ? Number.POSITIVE_INFINITY : Math.max(0, levelOf(state, local, now));
  return account === undefined ? inBucket : Math.min(inBucket, heldOrLeft(keeper, account, now) / MICRO);
}

/**
 * Gives back what an attempt with this verdict was charged: never more than the bucket holds.
 *
 * @param since store time before which nothing of it was charged; undefined: just now, as far as the caller knows
 */
export function putBack(
  keeper: Keeper,
  state: KeyState,
  verdict: Verdict,
  micro: MicroTokens,
  since: Microseconds | undefined,
  now: Milliseconds,
): void {
  if (!isAllowed(verdict) || verdict === VERDICT.policyAllows) return;
  const { local } = state.terms;
  if (local !== undefined) giveBack(state, local, micro, now);
  if (verdict === VERDICT.allowed && state.account) keeper.refund(state.account, micro, since, now);
}

/** What is in hand, and what a store in this process would add to it. */
function heldOrLeft(keeper: Keeper, account: Account, now: Milliseconds): MicroTokens {
  return Math.max(0, liveBalance(account, now) + (keeper.leftNow(account) ?? 0) - account.debt);
}
