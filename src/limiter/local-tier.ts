import type { Meter } from '../algorithm/meter.js';
import * as tokenBucket from '../algorithm/token-bucket.js';
import { everyTerms, type LocalTier, type Policy } from '../policy/policy.js';
import { MICRO, type MicroTokens, type Milliseconds, type Tokens } from '../units.js';

/** What the local tier of one key is: a token bucket in its own numbers, or a meter of another algorithm beside it. */
export interface LocalState extends tokenBucket.TokenBucket {
  meter: Meter | undefined;
}

type NewMeter = (terms: LocalTier, wallNow: () => Milliseconds) => Meter | undefined;
let newMeter: NewMeter | undefined;

/** Whether a policy has a local tier that is no token bucket, and that must be loaded first. */
export function lacksMeters(policy: Policy): boolean {
  return !newMeter && everyTerms(policy).some(({ local }) => local && local.algorithm !== 'token-bucket');
}

/** Loads the algorithms that most limiters do without. */
export async function loadMeters(): Promise<void> {
  ({ newMeter } = await import('../algorithm/meter.js'));
}

/** The meter of terms that need one, never used. They have been loaded. */
export function meterOf(terms: LocalTier | undefined, wallNow: () => Milliseconds): Meter | undefined {
  return terms && newMeter?.(terms, wallNow);
}

/** What can be taken at once. */
export function levelOf(state: LocalState, terms: LocalTier, now: Milliseconds): Tokens {
  return state.meter ? state.meter.level(now) / MICRO : tokenBucket.levelAt(state, terms, now);
}

/** Charges `cost` of a level that has been seen to be enough. `waited`: the caller was woken for its turn. */
export function charge(
  state: LocalState,
  level: Tokens,
  cost: Tokens,
  micro: MicroTokens,
  now: Milliseconds,
  waited: boolean,
): void {
  if (state.meter) state.meter.take(micro, now, waited);
  else tokenBucket.take(state, level, cost, now);
}

/** Whole milliseconds, at least 1, until a cost is there behind those `ahead` of it. */
export function waitOf(
  state: LocalState,
  terms: LocalTier,
  micro: MicroTokens,
  ahead: MicroTokens,
  now: Milliseconds,
): Milliseconds {
  if (state.meter) return Math.max(1, state.meter.wait(micro, ahead, now));
  const tokens = (ahead + micro) / MICRO;
  if (tokens <= terms.burst) return Math.max(1, tokenBucket.waitFor(state, terms, tokens, now));
  // A queue may need more than the bucket holds: it is earned while those in front take theirs.
  return Math.max(1, Math.ceil((tokens - tokenBucket.levelAt(state, terms, now)) / terms.ratePerMs));
}

/** Milliseconds until it is as if it had never been used. */
export function freshIn(state: LocalState, terms: LocalTier, now: Milliseconds): Milliseconds {
  if (state.meter) return state.meter.fresh(now);
  const missing = terms.burst - tokenBucket.levelAt(state, terms, now);
  return missing > 0 ? Math.max(1, missing / terms.ratePerMs) : 0;
}

/** Gives back: never more than it holds. */
export function putBack(state: LocalState, terms: LocalTier, micro: MicroTokens, now: Milliseconds): void {
  if (state.meter) {
    state.meter.putBack(micro, now);
    return;
  }
  state.tokens = Math.min(terms.burst, tokenBucket.levelAt(state, terms, now) + micro / MICRO);
  state.at = Math.max(state.at, now);
}

/** Charges what need not be there, so that it owes as much as it holds when full at most. */
export function penalise(state: LocalState, terms: LocalTier, micro: MicroTokens, now: Milliseconds): void {
  const level = levelOf(state, terms, now);
  if (state.meter) {
    state.meter.take(Math.min(micro, Math.round((level + terms.burst) * MICRO)), now, false);
    return;
  }
  state.tokens = Math.max(-terms.burst, level - micro / MICRO);
  state.at = Math.max(state.at, now);
}
