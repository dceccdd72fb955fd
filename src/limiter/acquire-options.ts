import { InvalidOptionError, show } from '../errors.js';
import type { Milliseconds, Tokens } from '../units.js';

/** Options of `acquire`. */
export interface AcquireOptions {
  /** Tokens to take; positive, at most six decimals. Default 1. */
  readonly cost?: Tokens;
  /**
   * How long to wait for tokens: 0 (not at all) or more. Left out: no longer than the ceiling store takes to answer,
   * where that may help.
   */
  readonly maxWaitMs?: Milliseconds;
  /** Ends the wait: the promise rejects with the signal's reason, and nothing has been charged. */
  readonly signal?: AbortSignal;
  /** Whoever waits with a higher one is served first, however long the others have waited. A whole number. Default 0. */
  readonly priority?: number;
  /** Where as many wait for this key already, the call is denied at once, `queue-full`. Whole, 0 or more. Default: none. */
  readonly maxQueued?: number;
}

/** Options of `acquireAll`. */
export interface AcquireAllOptions {
  /**
   * How long to wait for tokens of all limits: 0 (not at all) or more. Left out: no longer than the ceiling store takes to
   * answer for each, where that may help.
   */
  readonly maxWaitMs?: Milliseconds;
  /** Ends the wait: the promise rejects with the signal's reason, and nothing has been charged. */
  readonly signal?: AbortSignal;
}

/** Options of `enter`. */
export interface EnterOptions {
  /**
   * How long to wait for a seat: 0 (not at all: of use only where the ceiling is in this process) or more. Left out: for
   * one answer of the ceiling store.
   */
  readonly maxWaitMs?: Milliseconds;
  /** Ends the wait: the promise rejects with the signal's reason, and no seat has been taken. */
  readonly signal?: AbortSignal;
}

/** How long a caller waits. */
export interface Patience {
  readonly maxWaitMs: Milliseconds | undefined;
  readonly signal: AbortSignal | undefined;
}

/** All options of `acquire`. */
export interface CheckedOptions extends Patience {
  readonly cost: Tokens;
  readonly priority: number;
  readonly maxQueued: number;
}

const NO_BOUND = Number.POSITIVE_INFINITY;
const NONE_GIVEN: CheckedOptions = {
  cost: 1,
  maxWaitMs: undefined,
  signal: undefined,
  priority: 0,
  maxQueued: NO_BOUND,
};
const PATIENCE = ['maxWaitMs', 'signal'] as const;
const OF_ACQUIRE = ['cost', ...PATIENCE, 'priority', 'maxQueued'] as const;

/** Checks the options of one call; the cost itself is checked with the policy. */
export function checkAcquireOptions(options: AcquireOptions | undefined): CheckedOptions {
  if (options === undefined) return NONE_GIVEN;
  checkNames('acquire', OF_ACQUIRE, options);
  return checkAcquire(options);
}

function checkAcquire({ cost = 1, maxWaitMs, signal, priority = 0, maxQueued = NO_BOUND }: AcquireOptions) {
  if (!Number.isSafeInteger(priority)) {
    throw new InvalidOptionError(`Expected \`priority\` to be a whole number, got ${show(priority)}.`);
  }
  if (maxQueued !== NO_BOUND && !(Number.isSafeInteger(maxQueued) && maxQueued >= 0)) {
    throw new InvalidOptionError(`Expected \`maxQueued\` to be a whole number, 0 or more, got ${show(maxQueued)}.`);
  }
  return { cost, priority, maxQueued, ...checkPatience(maxWaitMs, signal) };
}

/** Checks the options of one call of `acquireAll`. */
export function checkAcquireAllOptions(options: AcquireAllOptions = {}): Patience {
  checkNames('acquireAll', PATIENCE, options);
  return checkPatience(options.maxWaitMs, options.signal);
}

/** Checks the options of one call of `enter`. */
export function checkEnterOptions(options: EnterOptions | undefined): Patience {
  if (options === undefined) return NONE_GIVEN;
  checkNames('enter', PATIENCE, options);
  return checkPatience(options.maxWaitMs, options.signal);
}

/** @throws InvalidOptionError where `options` is no object, or has one that `verb` does not know */
function checkNames(verb: string, known: readonly string[], options: object): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidOptionError(`Expected the options of \`${verb}\` to be an object, got ${show(options)}.`);
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw new InvalidOptionError(`Expected an option of \`${verb}\` (${known.join(', ')}), got ${show(name)}.`);
    }
  }
}

function checkPatience(maxWaitMs: Milliseconds | undefined, signal: AbortSignal | undefined): Patience {
  if (maxWaitMs !== undefined && !(typeof maxWaitMs === 'number' && maxWaitMs >= 0)) {
    throw new InvalidOptionError(
      `Expected \`maxWaitMs\` to be a number of milliseconds, 0 or more, got ${show(maxWaitMs)}.`,
    );
  }
  if (
    signal !== undefined &&
    !(typeof signal === 'object' && signal !== null && typeof signal.addEventListener === 'function')
  ) {
    throw new InvalidOptionError(`Expected \`signal\` to be an AbortSignal, got ${show(signal)}.`);
  }
  return { maxWaitMs, signal };
}
