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
  /** Whoever waits here with a higher one is seated first, however long the others have waited. A whole number. Default 0. */
  readonly priority?: number;
  /** Where as many wait here for this key already, the call is turned away, `queue-full`. Whole, 0 or more. Default: none. */
  readonly maxQueued?: number;
}

/** How long a caller waits. */
export interface Patience {
  readonly maxWaitMs: Milliseconds | undefined;
  readonly signal: AbortSignal | undefined;
}

/** The same, and its place among the others who do. */
export interface QueuePatience extends Patience {
  readonly priority: number;
  readonly maxQueued: number;
}

/** All options of `acquire`. */
export interface CheckedOptions extends QueuePatience {
  readonly cost: Tokens;
}

const NO_BOUND = Number.POSITIVE_INFINITY;
const NONE_GIVEN: CheckedOptions = {
  cost: 1,
  maxWaitMs: undefined,
  signal: undefined,
  priority: 0,
  maxQueued: NO_BOUND,
};

/** What an option is to be, where it is given. */
export type Check = readonly [expected: string, fits: (value: never) => boolean];

const PATIENCE = {
  maxWaitMs: ['a number of milliseconds, 0 or more', (value) => typeof value === 'number' && value >= 0],
  signal: ['an AbortSignal', (value: AbortSignal | null) => typeof value?.addEventListener === 'function'],
} satisfies Record<string, Check>;

const OF_ENTER = {
  ...PATIENCE,
  priority: ['a whole number', Number.isSafeInteger],
  maxQueued: [
    'a whole number, 0 or more',
    (value: number) => value === NO_BOUND || (Number.isSafeInteger(value) && value >= 0),
  ],
} satisfies Record<string, Check>;

/** The options of `acquire`; a cost is checked with the policy. */
export const OF_ACQUIRE = { cost: ['', () => true], ...OF_ENTER } satisfies Record<string, Check>;

/** Checks the options of one call; the cost itself is checked with the policy. */
export function checkAcquireOptions(options: AcquireOptions | undefined): CheckedOptions {
  if (options === undefined) return NONE_GIVEN;
  checkOptions('acquire', OF_ACQUIRE, options);
  const { cost = 1, maxWaitMs, signal, priority = 0, maxQueued = NO_BOUND } = options;
  return { cost, maxWaitMs, signal, priority, maxQueued };
}

/** Checks the options of `enter`. */
export function checkEnterOptions(options: EnterOptions | undefined): QueuePatience {
  if (options === undefined) return NONE_GIVEN;
  checkOptions('enter', OF_ENTER, options);
  const { maxWaitMs, signal, priority = 0, maxQueued = NO_BOUND } = options;
  return { maxWaitMs, signal, priority, maxQueued };
}

/** Checks the options of a call that has no others. */
export function checkPatience(verb: string, options: AcquireAllOptions | undefined): Patience {
  if (options === undefined) return NONE_GIVEN;
  checkOptions(verb, PATIENCE, options);
  return { maxWaitMs: options.maxWaitMs, signal: options.signal };
}

/** @throws InvalidOptionError where `options` is no object, or has one that `verb` does not know or can't use */
export function checkOptions(verb: string, checks: Readonly<Record<string, Check>>, options: object): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidOptionError(`Expected the options of \`${verb}\` to be an object, got ${show(options)}.`);
  }
  for (const [name, value] of Object.entries(options)) {
    const check = checks[name];
    if (check === undefined) {
      const known = Object.keys(checks).join(', ');
      throw new InvalidOptionError(`Expected an option of \`${verb}\` (${known}), got ${show(name)}.`);
    }
    const [expected, fits] = check;
    if (value === undefined || fits(value as never)) continue;
    throw new InvalidOptionError(`Expected \`${name}\` to be ${expected}, got ${show(value)}.`);
  }
}
