import { InvalidOptionError, show } from '../errors.js';
import { type AcquireOptions, type Check, checkOptions, OF_ACQUIRE } from '../limiter/acquire-options.js';
import { KeyHandle } from '../limiter/key-handle.js';
import type { PolicyLimiter } from '../limiter/policy-limiter.js';
import { termsFor } from '../policy/policy.js';
import type { Milliseconds, Tokens } from '../units.js';
import { DeniedError } from './denied-error.js';
import { handled, type OfKey } from './of-key.js';
import { reserve } from './one-limit.js';
import { pause } from './pause.js';

/** Options of {@link schedule}. */
export interface ScheduleOptions<Result = unknown> extends AcquireOptions {
  /** How long the call may wait, for its seat and its tokens together: 0 or more. Default: for as long as it takes. */
  readonly maxWaitMs?: Milliseconds;
  /**
   * What the call has cost, now that it has ended: 0 gives all of it back, such as where it failed before it did
   * anything. Not told of a call that was not made. Default: what it was charged.
   */
  readonly settle?: (outcome: PromiseSettledResult<Result>) => Tokens;
  /**
   * For how many ms the whole fleet leaves the key alone from now on, as who was called has asked; 0 or `undefined`: not
   * at all. Calls that wait go on waiting, unless their `maxWaitMs` ends before that.
   */
  readonly pauseFor?: (outcome: PromiseSettledResult<Result>) => Milliseconds | undefined;
}

/** Options of {@link wrap}, of a handle. */
export interface WrapHandleOptions<Args extends unknown[] = never, Result = unknown>
  extends Omit<ScheduleOptions<Result>, 'cost'> {
  /** Tokens a call takes, for all or by their arguments. Default 1. */
  readonly cost?: Tokens | ((...args: Args) => Tokens);
}

/** Options of {@link wrap}. */
export interface WrapOptions<Args extends unknown[] = never, Result = unknown> extends WrapHandleOptions<Args, Result> {
  /** Whose limit it is, for all calls or by their arguments. */
  readonly key: string | ((...args: Args) => string);
}

const aFunction: Check = ['a function', (value) => typeof value === 'function'];
const OF_SCHEDULE = { ...OF_ACQUIRE, settle: aFunction, pauseFor: aFunction };
const aKey: Check = ['a key or a function', (value) => typeof value === 'string' || typeof value === 'function'];

/**
 * Calls `run` once its turn has come, and answers what it does. Takes a seat where the policy has `concurrency`, then
 * `cost` tokens, as `acquire` does; the seat is kept until the call has ended. In that order, so that calls begin when
 * they are charged: those that had paid before they were seated could begin all at once.
 *
 *     const user = await schedule(github, 'installation-7', () => fetchUser('octocat'));
 *
 * @throws {DeniedError} where the limit denies; then `run` has not been called
 * @throws as `acquire`; whatever `run`, `settle` and `pauseFor` throw. Rejects with the signal's reason where it is aborted first
 */
export async function schedule<Result>(
  ...call: OfKey<[run: () => Result | PromiseLike<Result>, options?: ScheduleOptions<Result>]>
): Promise<Result> {
  const [handle, run, options = {}] = handled(call);
  checkOptions('schedule', OF_SCHEDULE, options);
  const { settle, pauseFor, cost = 1, maxWaitMs = Number.POSITIVE_INFINITY, ...place } = options;
  const { teller, policy, key } = handle;
  teller.micro(key, cost);
  const deadline = teller.now() + maxWaitMs;
  const left = (): Milliseconds => Math.max(0, deadline - teller.now());

  const seated = termsFor(policy, key).concurrency !== undefined;
  const seat = seated ? await handle.enter({ ...place, maxWaitMs }) : undefined;
  if (seat?.allowed === false) throw new DeniedError(policy.name, seat);
  try {
    // Whenever the call ends, what it has cost can still be settled.
    const expiresAfterMs = Number.POSITIVE_INFINITY;
    const reservation = await reserve(handle, { ...place, cost, maxWaitMs: left(), expiresAfterMs });
    const { decision } = reservation;
    if (!decision.allowed) throw new DeniedError(policy.name, decision);
    const [outcome] = await Promise.allSettled([(async () => run())()]);
    const pauseMs = pauseFor?.(outcome) ?? 0;
    if (pauseMs !== 0) await pause(handle, pauseMs);
    if (settle) reservation.settle(settle(outcome));
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  } finally {
    seat?.release();
  }
}

/**
 * A function that calls `fn` with its own arguments and `this`, each time as {@link schedule} does.
 *
 *     const getUser = wrap(github, fetchUser, { key: (name, tenant) => tenant });
 *
 * @throws {InvalidOptionError}
 */
export function wrap<This, Args extends unknown[], Result>(
  limit: PolicyLimiter,
  fn: (this: This, ...args: Args) => Result | PromiseLike<Result>,
  options: WrapOptions<Args, Result>,
): (this: This, ...args: Args) => Promise<Result>;
export function wrap<This, Args extends unknown[], Result>(
  handle: KeyHandle,
  fn: (this: This, ...args: Args) => Result | PromiseLike<Result>,
  options?: WrapHandleOptions<Args, Result>,
): (this: This, ...args: Args) => Promise<Result>;
export function wrap<This, Args extends unknown[], Result>(
  limit: PolicyLimiter | KeyHandle,
  fn: (this: This, ...args: Args) => Result | PromiseLike<Result>,
  options: Partial<WrapOptions<Args, Result>> = {},
): (this: This, ...args: Args) => Promise<Result> {
  if (typeof fn !== 'function') throw new InvalidOptionError(`Expected \`fn\` to be a function, got ${show(fn)}.`);
  const { key: given, ...others } = options;
  const handle = limit instanceof KeyHandle ? limit : undefined;
  checkOptions('wrap', handle ? OF_SCHEDULE : { key: aKey, ...OF_SCHEDULE }, options);
  if (!handle && given === undefined) {
    throw new InvalidOptionError('Expected `key` to be a key or a function, got undefined.');
  }
  const { cost = 1, ...rest } = others;
  return async function (...args) {
    const key = typeof given === 'function' ? given(...args) : given;
    const ofCall = { ...rest, cost: typeof cost === 'function' ? cost(...args) : cost };
    return schedule(handle ?? new KeyHandle(key as string, limit as PolicyLimiter), () => fn.apply(this, args), ofCall);
  };
}
