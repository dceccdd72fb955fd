import type { Milliseconds } from '../units.js';

/**
 * The fewest whole milliseconds after which `passes` holds, given that it does not yet hold at `now` and, once it does,
 * goes on doing so. `guess` is where arithmetic puts it: the rounding of that may be off by a few.
 */
export function exactWait(guess: Milliseconds, now: Milliseconds, passes: (at: Milliseconds) => boolean): Milliseconds {
  let wait = Math.max(1, Math.ceil(guess));
  while (!passes(now + wait)) wait += Math.max(1, Math.ceil(wait * Number.EPSILON));
  while (wait > 1 && passes(now + wait - 1)) wait -= 1;
  return wait;
}
