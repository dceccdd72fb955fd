import { InvalidCostError, InvalidOptionError, show } from '../errors.js';
import { type AcquireOptions, checkAcquireOptions } from '../limiter/acquire-options.js';
import { microTokensOf } from '../limiter/cost-limits.js';
import { type Decision, VERDICT } from '../limiter/decision.js';
import type { KeyHandle } from '../limiter/key-handle.js';
import { penalise as penaliseLocally } from '../limiter/local-tier.js';
import type { Microseconds, Milliseconds, Tokens } from '../units.js';
import { handled, type OfKey } from './of-key.js';
import { Reservation } from './reservation.js';
import { available, look, putBack } from './scout.js';

/** A decision about as many tokens as there are. */
export type PartialDecision = Decision & {
  /** Tokens taken; 0 where it is denied. */
  readonly granted: Tokens;
};

/** Options of {@link reserve}. */
export interface ReserveOptions extends AcquireOptions {
  /** How long it can be settled: a positive number of ms. Default 60,000. */
  readonly expiresAfterMs?: Milliseconds;
}

const RESERVED_MS: Milliseconds = 60_000;

/**
 * What `api.decide(key, cost)` would say now. Charges, counts and fetches nothing, however often it is asked.
 *
 * @throws as `decide`
 */
export function peek(...call: OfKey<[cost?: Tokens]>): Decision {
  const [handle, cost = 1] = handled(call);
  const { teller, key } = handle;
  const micro = teller.micro(key, cost);
  const now = teller.now();
  const state = handle.find(now);
  return teller.clerk.written(state, look(teller, state, cost, micro, now), micro, state.waiters?.micro ?? 0, now);
}

/**
 * Takes as many whole tokens as are in hand: `most` at most, and none where that would be fewer than `least`. Never waits.
 * For work that can be cut to size, such as a batch.
 *
 * @param most positive, at most six decimals; taken with its decimals where all of it is there
 * @param least at most `most`; default 1
 * @returns a decision, and in `granted` what was taken: 0 where it is denied
 * @throws as `decide`, of `least`
 */
export function upTo(...call: OfKey<[most: Tokens, least?: Tokens]>): PartialDecision {
  const [handle, most, least = 1] = handled(call);
  if (!(most >= least)) throw new InvalidCostError(most);
  const { teller, key } = handle;
  teller.micro(key, least);
  const now = teller.now();
  const state = handle.find(now);
  const inHand = available(teller, state, now);
  const cost = Math.max(least, inHand >= most ? most : Math.floor(inHand));
  const decision = teller.decideClosely(state, cost, microTokensOf(cost), now);
  // What a shadow policy lets pass, it lets pass whole.
  const granted = decision.allowed ? (decision.shadow ? most : cost) : 0;
  return { ...decision, granted };
}

/**
 * Gives tokens back that were charged just now for something that did not come about. Never more than the bucket holds; of
 * a ceiling through its store, where that knows them to be spent already.
 *
 * @param cost what was charged, or a part of it; default 1
 * @throws as `decide`
 */
export function refund(...call: OfKey<[cost?: Tokens]>): void {
  const [handle, cost = 1] = handled(call);
  refundSince(handle, cost, undefined);
}

/** @param since store time before which nothing of it was charged; undefined: just now, as far as the caller knows */
function refundSince(handle: KeyHandle, cost: Tokens, since: Microseconds | undefined): void {
  const { teller, key } = handle;
  const micro = teller.micro(key, cost);
  const now = teller.now();
  const state = handle.find(now);
  putBack(teller.keeper, state, VERDICT.allowed, micro, since, now);
  if (state.account) teller.keeper.refundNow(state.account, now);
  teller.room.serve(state, true, now);
}

/**
 * Charges tokens whether or not they are there, for what cost more than was thought, or should not have been done. A
 * local bucket can come to owe as much as it holds when full, no more; of a ceiling what is missing is paid out of what
 * this instance is granted next.
 *
 * @throws {InvalidKeyError} {@link InvalidCostError}
 */
export function penalise(...call: OfKey<[cost?: Tokens]>): void {
  const [handle, cost = 1] = handled(call);
  const { teller } = handle;
  const micro = microTokensOf(cost);
  const now = teller.now();
  const state = handle.find(now);
  const { local, mode } = state.terms;
  if (mode === 'allow' || mode === 'deny') return;
  if (local !== undefined) penaliseLocally(state, local, micro, now);
  const { account } = state;
  account?.owe(micro, now);
  if (account !== undefined && account.debt > 0) teller.keeper.collect(account, now);
}

/**
 * As `api.acquire`, for a request whose cost is known only afterwards: charges `cost` now, and the difference once it is
 * settled. One that is never settled has cost what was reserved.
 *
 * @throws as `acquire`
 */
export async function reserve(...call: OfKey<[options?: ReserveOptions]>): Promise<Reservation> {
  const [handle, options = {}] = handled(call);
  const { expiresAfterMs = RESERVED_MS, ...acquire } = options;
  if (!(typeof expiresAfterMs === 'number' && expiresAfterMs > 0)) {
    throw new InvalidOptionError(
      `Expected \`expiresAfterMs\` to be a positive number of milliseconds, got ${show(expiresAfterMs)}.`,
    );
  }
  const { cost } = checkAcquireOptions(acquire);
  const { teller } = handle;
  const decision = await handle.acquire(acquire);
  const now = teller.now();
  const since = handle.find(now).account?.clock.earliest(now);
  const expiresAt = now + expiresAfterMs;
  return new Reservation(decision, {
    cost,
    live: () => !teller.closed && teller.now() < expiresAt,
    refund: (tokens) => refundSince(handle, tokens, since),
    penalise: (tokens) => penalise(handle, tokens),
  });
}
