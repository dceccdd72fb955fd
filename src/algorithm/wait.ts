import type { Milliseconds } from '../units.js';

/**
 * The fewest whole milliseconds after which `passes` holds, given that it does not yet hold at `now` and, once it does,
 * goes on doing so. `guess` is where arithmetic puts it: the rounding of that may be off, mostly by a few, by any number
 * where a rate is so low that a token's last digit takes an age. Beyond 2^53 ms, where not every whole number is a double,
 * it is the least double.
 */
export function exactWait(guess: Milliseconds, now: Milliseconds, passes: (at: Milliseconds) => boolean): Milliseconds {
  let late = Math.max(1, Math.ceil(guess));
  let early = 0;
  // From the guess on in steps that double, so that it lies between the last two of them.
  let step = Math.max(1, late * Number.EPSILON);
  if (passes(now + late)) {
    while (late - step > 0 && passes(now + late - step)) {
      late -= step;
      step *= 2;
    }
    early = Math.max(0, late - step);
  } else {
    do {
      early = late;
      late += step;
      step *= 2;
    } while (!passes(now + late));
  }
  for (;;) {
    const middle = Math.floor(early + (late - early) / 2);
    if (!(middle > early && middle < late)) return late;
    if (passes(now + middle)) late = middle;
    else early = middle;
  }
}
