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

const KNOWN = new Set(['cost', 'maxWaitMs', 'signal']);

interface CheckedOptions {
  readonly cost: Tokens;
  readonly maxWaitMs: Milliseconds | undefined;
  readonly signal: AbortSignal | undefined;
}

const NONE_GIVEN: CheckedOptions = { cost: 1, maxWaitMs: undefined, signal: undefined };

/** Checks the options of one call; the cost itself is checked with the policy. */
export function checkAcquireOptions(options: AcquireOptions | undefined): CheckedOptions {
  if (options === undefined) return NONE_GIVEN;
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidOptionError(`Expected the options of \`acquire\` to be an object, got ${show(options)}.`);
  }
  for (const name of Object.keys(options)) {
    if (!KNOWN.has(name)) {
      throw new InvalidOptionError(`Expected an option of \`acquire\` (${[...KNOWN].join(', ')}), got ${show(name)}.`);
    }
  }
  const { cost = 1, maxWaitMs, signal } = options;
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
  return { cost, maxWaitMs, signal };
}
