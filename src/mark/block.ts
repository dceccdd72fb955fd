import { FOREVER } from '../ceiling/mark-store.js';
import { InvalidOptionError, show } from '../errors.js';
import { MICROS_PER_MS, type Microseconds, type Milliseconds } from '../units.js';

/** A block as it was made. */
export interface Block {
  /** How long the key is blocked for from now on, in whole ms; `Infinity`: until it is unblocked. */
  readonly forMs: Milliseconds;
  /** Its step on the ladder, from 1; 0: on none. */
  readonly step: number;
}

/** Options of `block`. */
export interface BlockOptions {
  /**
   * How long after the end of its last block a key's place on the ladder is remembered: a positive number of ms.
   * Default: as long as the longest step, or a day where that is for ever. For a ladder only.
   */
  readonly forgetAfterMs?: Milliseconds;
}

/** A block as the store is told of it. */
export interface BlockTerms {
  readonly steps: readonly Microseconds[];
  /** 0: on no ladder. */
  readonly forgetAfter: Microseconds;
}

const DAY_MS: Milliseconds = 86_400_000;
/** Ten years: what is longer is for ever. */
const LONGEST_MS: Milliseconds = 3_652 * DAY_MS;
const MOST_STEPS = 32;

/**
 * Checks what `block` was given.
 *
 * @throws InvalidOptionError
 */
export function checkBlock(forMs: unknown, options: BlockOptions = {}): BlockTerms {
  const onLadder = Array.isArray(forMs);
  const lengths: readonly unknown[] = onLadder ? forMs : [forMs];
  if (lengths.length === 0 || lengths.length > MOST_STEPS || !lengths.every(isLength)) {
    throw new InvalidOptionError(
      `Expected the length of a block to be a positive number of ms up to ten years, Infinity, or 1 to ${MOST_STEPS} of ` +
        `them, got ${onLadder ? `[${lengths.map(show).join(', ')}]` : show(forMs)}.`,
    );
  }
  const { forgetAfterMs, ...unknown } = options;
  const [stray] = Object.keys(unknown);
  if (stray !== undefined) {
    throw new InvalidOptionError(`Expected an option of \`block\` (forgetAfterMs), got ${show(stray)}.`);
  }
  const longest = Math.max(...lengths);
  const remembered = forgetAfterMs ?? (longest === Number.POSITIVE_INFINITY ? DAY_MS : longest);
  if (!isLength(remembered) || (forgetAfterMs !== undefined && !onLadder)) {
    throw new InvalidOptionError(
      `Expected \`forgetAfterMs\` to be a positive number of ms, for a ladder of blocks, got ${show(forgetAfterMs)}` +
        `${onLadder ? '.' : ' for a single one.'}`,
    );
  }
  return { steps: lengths.map(microseconds), forgetAfter: onLadder ? microseconds(remembered) : 0 };
}

/** How long from `now` until the end of a block. */
export function leftOf(until: Microseconds, now: Microseconds): Milliseconds {
  return until === FOREVER ? Number.POSITIVE_INFINITY : (until - now) / MICROS_PER_MS;
}

function isLength(value: unknown): value is Milliseconds {
  return typeof value === 'number' && (value === Number.POSITIVE_INFINITY || (value > 0 && value <= LONGEST_MS));
}

function microseconds(ms: Milliseconds): Microseconds {
  return ms === Number.POSITIVE_INFINITY ? FOREVER : Math.ceil(ms * MICROS_PER_MS);
}
