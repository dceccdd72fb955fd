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

interface CheckedOptions extends Patience {
  readonly cost: Tokens;
}

const NONE_GIVEN: CheckedOptions = { cost: 1, maxWaitMs: undefined, signal: undefined };
const PATIENCE = ['maxWaitMs', 'signal'] as const;
const OF_ACQUIRE = ['cost', ...PATIENCE] as const;

/** Checks the options of one call; the cost itself is checked with the policy. */
export function checkAcquireOptions(options: AcquireOptions | undefined): CheckedOptions {
  if (options === undefined) return NONE_GIVEN;
  checkNames('acquire', OF_ACQUIRE, options);
  const { cost = 1, maxWaitMs, signal } = options;
  return { cost, ...checkPatience(maxWaitMs, signal) };
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
