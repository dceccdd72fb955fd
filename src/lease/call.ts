import { type LeaseCall, leaseGrace } from '../ceiling/ceiling-store.js';
import type { CeilingTerms, Policy } from '../policy/policy.js';
import type { Time } from '../time.js';
import { MICRO, MICROS_PER_MS, type Microseconds, type MicroTokens, type Milliseconds } from '../units.js';
import type { Account } from './account.js';
import { type Flight, NOBODY } from './errand.js';
import { batchSize, followedPerSecond, perSecond } from './sizing.js';
import { withdraw } from './wallet.js';
import { windowCall } from './window-call.js';

/** What a call says of the caller. */
export interface Caller {
  readonly holder: string;
  readonly weight: number;
  readonly deadlineMs: Milliseconds;
  readonly time: Pick<Time, 'wallNow'>;
}

/**
 * The call an account should make at `now`, or `undefined` where none is of use. What it gives back has then left the
 * wallet, for good: whatever becomes of the call (rule 4).
 */
export function composeCall(
  account: Account,
  caller: Caller,
  seq: number,
  now: Milliseconds,
  returnAll: boolean,
): { call: LeaseCall; flight: Flight } | undefined {
  const { policy } = account;
  const terms = account.terms.ceiling;
  if (!terms) return undefined;

  account.measure(now);
  const idle = account.unused(now) && account.waiting === 0;
  // A key that is asked once may never be asked again: the first call holds nothing ready.
  const first = !account.met;

  const batch = batchSize(followedPerSecond(account), account);
  const target = idle || first || returnAll ? 0 : Math.min(batch, terms.burst);
  const spare = spareOf(account, target, idle || returnAll, terms);
  // What goes back with the call is not there when the answer comes: counted as in hand, it would be lacking again and again.
  const kept = account.balance - spare;
  const need = Math.max(0, Math.min(account.waiting + account.missed + account.debt, terms.burst) - kept);
  const head = Math.min(need, Math.max(0, (account.waitingHead || account.missed || account.debt) - kept));
  const want = Math.max(0, target - kept);
  const low = account.balance < account.lowWater;
  if (need === 0 && !low && spare === 0 && account.disown === 0 && !account.forced) return undefined;

  const returned = spare > 0 ? withdraw(account, spare, now) : 0;
  account.giveBack = false;
  account.known = account.balance;
  // Out of the account for good, as what is returned is. A holder that the store may have forgotten makes itself known first.
  const carried = now < account.recordUntil;
  const refund = carried ? account.refund : 0;
  const refills = carried ? account.refills : NOBODY;
  if (carried) account.refund = 0;
  if (carried) account.refills = NOBODY;
  // What is fetched for waiting callers is spent at once, so it may not block refill for a whole lease.
  const onlyNeed = target === 0 && account.balance === 0 && account.missed === 0;
  const leaseMs = onlyNeed ? Math.min(caller.deadlineMs, policy.lease.durationMs) : policy.lease.durationMs;
  const witness = account.taken > 0 && account.certainUntil > account.clock.at(now) ? account.taken : 0;
  const givesBack = returned > 0 || refund > 0 || account.disown > 0;
  const believed = account.balance > 0 || givesBack || witness > 0 || account.outageSince > 0;
  const since = account.outageSince;
  const flight: Flight = { seq, sentAt: now, leaseMs, returned, refund, refills, head, since, settle: () => {} };
  const call: LeaseCall = {
    policy: account.ledger,
    key: account.name,
    fence: account.fence,
    version: policy.version,
    burst: terms.burst,
    rateNum: terms.rateNum,
    rateDen: terms.rateDen,
    window: windowCall(terms, account.clock.at(now) || caller.time.wallNow() * MICROS_PER_MS),
    inheritance: policy.inheritance,
    guard: guardOf(policy),
    holder: caller.holder,
    seq,
    disown: account.disown,
    unspent: account.balance,
    returned,
    refund,
    refundSince: refund > 0 ? account.refundSince : 0,
    need,
    head,
    want,
    demand: perSecond(account),
    weight: caller.weight,
    lease: Math.floor(leaseMs * MICROS_PER_MS),
    sentAt: believed ? account.clock.at(now) : 0,
    since,
    witness,
    incarnation: account.incarnation,
    certainUntil: account.certainUntil,
  };
  return { call, flight };
}

/** How long after a loss of the store's data this policy's wallets may hold what the store has not heard of. */
function guardOf({ storeLoss, lease }: Policy): Microseconds {
  if (storeLoss === 'quick') return 0;
  const longest = Math.ceil(lease.durationMs * MICROS_PER_MS);
  return longest + leaseGrace(longest);
}

/** What can be given back: all of an idle account, what is over the batch of a busy one, what new terms don't cover. */
function spareOf(account: Account, target: MicroTokens, all: boolean, terms: CeilingTerms): MicroTokens {
  if (account.balance === 0) return 0;
  if (all) return account.balance;
  const keep = account.giveBack ? account.lowWater : Math.max(target + MICRO, account.lowWater);
  return Math.max(0, account.balance - Math.min(keep, terms.burst));
}
