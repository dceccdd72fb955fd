import { type GrantReply, MAX_AGE_US } from '../ceiling/ceiling-store.js';
import { MICRO, MICROS_PER_MS, type Milliseconds } from '../units.js';
import type { Account } from './account.js';
import type { Flight } from './errand.js';
import { followedPerSecond, lowWaterMark } from './sizing.js';
import { deposit, leaseEnd } from './wallet.js';

/** A grant of a quarter of the burst or more is a large one. */
const LARGE_PARTS = 4;

/** However long the wait, nobody comes later than this for the sake of others: a window's first moments are its best. */
const LONGEST_SPREAD_MS: Milliseconds = 250;

/** For so long after the end of a lease the store keeps the record of its holder, with something to spare for a call. */
const RECORD_KEPT_MS: Milliseconds = MAX_AGE_US / MICROS_PER_MS / 5;

/** So much and no more is held ready where the next call costs nothing. */
const LONGEST_HORIZON_IN_PROCESS_MS: Milliseconds = 300;

/** What taking a grant depends on besides the reply. */
export interface GrantTerms {
  readonly weight: number;
  readonly roundTripMs: Milliseconds;
  readonly inProcess: boolean;
  /**
   * How much later than told to come back, as a fraction of the time told; never earlier. Drawn anew for each reply, so
   * that a fleet that was told the same comes back spread out.
   */
  readonly spread: number;
}

/** Takes a grant into the wallet, and what the reply says of sharing and of the bucket into the account. */
export function takeGrant(
  account: Account,
  flight: Flight,
  reply: GrantReply,
  now: Milliseconds,
  terms: GrantTerms,
): void {
  const { counters } = account.owner;
  account.leaseCut = reply.lease > 0;
  const leaseMs = account.leaseCut ? Math.min(flight.leaseMs, reply.lease / MICROS_PER_MS) : flight.leaseMs;
  const dropped = deposit(account, reply.granted, leaseEnd(flight.sentAt, leaseMs), now);
  account.known += reply.granted;
  counters.tokensGranted += reply.granted / MICRO;
  counters.tokensExpired += dropped / MICRO;
  account.recordUntil = now + leaseMs + RECORD_KEPT_MS;
  if (reply.conflict) counters.termConflicts += 1;
  if (reply.granted > 0) account.granted = true;
  account.payDebt();
  account.lapsed = reply.granted > 0 && dropped > 0;
  account.disown = 0;
  if (account.outageSince === flight.since) account.outageSince = 0;
  // An outage that began while this call was under way is still to be paid for.
  else account.forced = true;
  account.missed = 0;

  if (reply.incarnation !== account.incarnation) {
    account.incarnation = reply.incarnation;
    account.taken = 0;
  }
  account.certainUntil = reply.certainUntil;
  account.taken = Math.max(0, account.taken + reply.granted - flight.returned);

  account.level = reply.level * terms.weight;
  // A store in this process need not be spared calls: only a need that it can't meet yet keeps from asking again.
  const horizonMs = reply.horizon / MICROS_PER_MS;
  account.toldHorizonMs = terms.inProcess ? Math.min(horizonMs, LONGEST_HORIZON_IN_PROCESS_MS) : horizonMs;
  const next = terms.inProcess ? reply.retry : reply.next;
  const wait = next / MICROS_PER_MS;
  account.blockedUntil = next > 0 ? now + wait + Math.min(LONGEST_SPREAD_MS, wait * terms.spread) : 0;
  account.retryAt = now + reply.retry / MICROS_PER_MS;
  account.unmet = reply.retry > 0 ? flight.head : 0;
  account.lowWater = lowWaterMark(followedPerSecond(account), account, terms.roundTripMs);
  if (reply.giveBack && account.balance > account.lowWater) {
    account.giveBack = true;
    account.forced = true;
  }
}

/**
 * Whether a grant was a large part of the bucket and most of it is spent already. That is worth a call of its own: what
 * has not been reported keeps its place in the burst, and so much of it would stop the refill until the next call.
 */
export function isLargeAndSpent(account: Account, reply: GrantReply): boolean {
  return LARGE_PARTS * reply.granted >= reply.burst && 2 * account.balance < reply.granted;
}
