import type { CeilingTerms } from '../policy/policy.js';
import type { Microseconds, MicroTokens } from '../units.js';
import { type Level, refill } from './exact.js';

/**
 * The strict rule for a store that has lost its data (`storeLoss: 'strict'`).
 *
 * After a loss, wallets hold tokens that the store does not know of, until their leases end: one lease and its grace
 * after the birth of the new data, the *guard*. If what was held ready in wallets was never more than ωB, then a bucket
 * that has T + O ≤ (1 − ω)B for as long admits, together with them, no more than B at once. So, under a strict policy,
 * grants on top of needs are made at all times only while O stays within ωB; and during the guard T is at most
 * (1 − ω)B − O. What waiting callers need may take O above ωB: it is spent as it arrives, and only what is under way to
 * them at the very moment of the loss adds to the bound.
 */
const HELD_READY = 0.4;

/** ωB: what may be outstanding for no caller that waits. */
export function heldReady(burst: MicroTokens): MicroTokens {
  return Math.floor(HELD_READY * burst);
}

/** Until when wallets may be about that the data born at `bornAt` has not heard of; 0: nobody asks for the strict rule. */
export function guardedUntil(guard: Microseconds, bornAt: Microseconds): Microseconds {
  return guard > 0 ? bornAt + guard : 0;
}

/** The most T may be: B − O; during the guard ωB less, but never below zero on that account. */
export function capUnder(
  burst: MicroTokens,
  outstanding: MicroTokens,
  until: Microseconds,
  now: Microseconds,
): MicroTokens {
  const cap = burst - outstanding;
  return now < until ? Math.min(cap, Math.max(0, cap - heldReady(burst))) : cap;
}

/** Refills a level that is kept low until the guard is over, and only then fills up. */
export function refillGuarded(
  level: Level,
  now: Microseconds,
  terms: CeilingTerms,
  outstanding: MicroTokens,
  until: Microseconds,
): void {
  if (level.at < until && now >= until)
    refill(level, until, terms, capUnder(terms.burst, outstanding, until, until - 1));
  refill(level, now, terms, capUnder(terms.burst, outstanding, until, now));
}
