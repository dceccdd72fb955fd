import type { LocalTier, Windows } from '../policy/policy.js';
import { MICRO, MICROS_PER_MS, type MicroTokens, type Milliseconds } from '../units.js';
import * as fixedWindow from './fixed-window.js';
import * as leakyBucket from './leaky-bucket.js';
import * as slidingCounter from './sliding-window-counter.js';
import * as slidingLog from './sliding-window-log.js';

/** The local tier of one key under any algorithm but the token bucket, which is kept where it takes least. */
export interface Meter {
  /** What can be taken at once. */
  level(now: Milliseconds): MicroTokens;
  /** Charges what is there, or, as a penalty, what need not be. `waited`: the caller was woken for its turn. */
  take(cost: MicroTokens, now: Milliseconds, waited: boolean): void;
  putBack(cost: MicroTokens, now: Milliseconds): void;
  /** Whole milliseconds until `cost` is there behind others who want `ahead`; 0 if it is. Exact where nobody is ahead. */
  wait(cost: MicroTokens, ahead: MicroTokens, now: Milliseconds): Milliseconds;
  /** Milliseconds until it is as if it had never been used, if nobody asks until then. */
  fresh(now: Milliseconds): Milliseconds;
  /** Goes on under newer terms of the same algorithm. */
  adopt(terms: LocalTier): void;
}

/** One who waited and was woken up to this much after its turn counts as on time. */
const LATE_MS: Milliseconds = 10;

/** A meter that has never been used; `undefined` for a token bucket. `wallNow`: windows of a calendar go by it. */
export function newMeter(terms: LocalTier, wallNow: () => Milliseconds): Meter | undefined {
  switch (terms.algorithm) {
    case 'token-bucket':
      return undefined;
    case 'leaky-bucket':
      return new LeakyMeter(terms);
    case 'fixed-window':
      return new FixedMeter(terms, wallNow);
    case 'sliding-window-log':
      return new LogMeter(terms);
    case 'sliding-window-counter':
      return new CounterMeter(terms);
  }
}

const micros = (terms: LocalTier): MicroTokens => Math.round(terms.burst * MICRO);
const perMs = (terms: LocalTier): number => terms.ratePerMs * MICRO;
const lengthMs = (terms: LocalTier): Milliseconds => ('length' in terms ? terms.length / MICROS_PER_MS : 0);

/** Until `cost` is there behind `ahead`: what is more than a window holds takes as many windows more. */
function waitBehind(
  terms: LocalTier,
  cost: MicroTokens,
  ahead: MicroTokens,
  waitFor: (cost: MicroTokens) => Milliseconds,
): Milliseconds {
  const most = micros(terms);
  const more = Math.max(0, ahead + cost - most);
  return waitFor(Math.min(most, ahead + cost)) + Math.ceil(more / perMs(terms));
}

class FixedMeter implements Meter {
  readonly #window = fixedWindow.newFixedWindow();
  readonly #wallNow: () => Milliseconds;
  #terms: LocalTier;
  #fixed: fixedWindow.FixedWindowTerms;
  #byWall: boolean;

  constructor(terms: LocalTier, wallNow: () => Milliseconds) {
    this.#wallNow = wallNow;
    this.#terms = terms;
    [this.#fixed, this.#byWall] = fixedTerms(terms);
  }

  level(now: Milliseconds): MicroTokens {
    return fixedWindow.levelAt(this.#window, this.#fixed, this.#at(now));
  }

  take(cost: MicroTokens, now: Milliseconds): void {
    fixedWindow.take(this.#window, this.#fixed, cost, this.#at(now));
  }

  putBack(cost: MicroTokens, now: Milliseconds): void {
    fixedWindow.putBack(this.#window, cost, this.#at(now));
  }

  wait(cost: MicroTokens, ahead: MicroTokens, now: Milliseconds): Milliseconds {
    const at = this.#at(now);
    return waitBehind(this.#terms, cost, ahead, (cost) => fixedWindow.waitFor(this.#window, this.#fixed, cost, at));
  }

  fresh(now: Milliseconds): Milliseconds {
    return Math.max(0, this.#window.end - this.#at(now));
  }

  adopt(terms: LocalTier): void {
    this.#terms = terms;
    // What was used of the window that is open stays used until its end.
    [this.#fixed, this.#byWall] = fixedTerms(terms);
  }

  #at(now: Milliseconds): Milliseconds {
    return this.#byWall ? this.#wallNow() : now;
  }
}

function fixedTerms(terms: LocalTier): [fixedWindow.FixedWindowTerms, boolean] {
  const { windows } = terms as LocalTier & { readonly windows: Windows };
  return [{ limit: micros(terms), windowEnd: fixedWindow.windowEnds(windows) }, windows.by !== 'first-use'];
}

class LogMeter implements Meter {
  readonly #log = slidingLog.newSlidingWindowLog();
  #terms!: LocalTier;
  #sliding!: slidingLog.SlidingWindowLogTerms;

  constructor(terms: LocalTier) {
    this.adopt(terms);
  }

  level(now: Milliseconds): MicroTokens {
    return slidingLog.levelAt(this.#log, this.#sliding, now);
  }

  take(cost: MicroTokens, now: Milliseconds): void {
    slidingLog.take(this.#log, this.#sliding, cost, now);
  }

  putBack(cost: MicroTokens, now: Milliseconds): void {
    slidingLog.putBack(this.#log, this.#sliding, cost, now);
  }

  wait(cost: MicroTokens, ahead: MicroTokens, now: Milliseconds): Milliseconds {
    return waitBehind(this.#terms, cost, ahead, (cost) => slidingLog.waitFor(this.#log, this.#sliding, cost, now));
  }

  fresh(now: Milliseconds): Milliseconds {
    const last = this.#log.times.at(-1);
    return last === undefined ? 0 : Math.max(0, last + this.#sliding.windowMs - now);
  }

  adopt(terms: LocalTier): void {
    this.#terms = terms;
    this.#sliding = { limit: micros(terms), windowMs: lengthMs(terms) };
  }
}

class CounterMeter implements Meter {
  #counter = slidingCounter.newSlidingWindowCounter();
  #terms!: LocalTier;
  #sliding!: slidingCounter.SlidingWindowCounterTerms;

  constructor(terms: LocalTier) {
    this.adopt(terms);
  }

  level(now: Milliseconds): MicroTokens {
    return slidingCounter.levelAt(this.#counter, this.#sliding, now);
  }

  take(cost: MicroTokens, now: Milliseconds): void {
    slidingCounter.take(this.#counter, this.#sliding, cost, now);
  }

  putBack(cost: MicroTokens, now: Milliseconds): void {
    slidingCounter.putBack(this.#counter, this.#sliding, cost, now);
  }

  wait(cost: MicroTokens, ahead: MicroTokens, now: Milliseconds): Milliseconds {
    return waitBehind(this.#terms, cost, ahead, (cost) =>
      slidingCounter.waitFor(this.#counter, this.#sliding, cost, now),
    );
  }

  fresh(now: Milliseconds): Milliseconds {
    const { index } = this.#counter;
    return index === Number.NEGATIVE_INFINITY ? 0 : Math.max(0, (index + 2) * this.#sliding.windowMs - now);
  }

  adopt(terms: LocalTier): void {
    const windowMs = lengthMs(terms);
    // Windows of another length are another grid: what was counted in the old one can't be placed in it.
    if (this.#terms && windowMs !== this.#sliding.windowMs) this.#counter = slidingCounter.newSlidingWindowCounter();
    this.#terms = terms;
    this.#sliding = { limit: micros(terms), windowMs };
  }
}

class LeakyMeter implements Meter {
  readonly #bucket = leakyBucket.newLeakyBucket();
  #most!: MicroTokens;
  #leaky!: leakyBucket.LeakyBucketTerms;

  constructor(terms: LocalTier) {
    this.adopt(terms);
  }

  level(now: Milliseconds): MicroTokens {
    return leakyBucket.mayLeave(this.#bucket, now) ? this.#most : 0;
  }

  take(cost: MicroTokens, now: Milliseconds, waited: boolean): void {
    leakyBucket.leave(this.#bucket, this.#leaky, cost, now, waited ? LATE_MS : 0);
  }

  putBack(cost: MicroTokens, now: Milliseconds): void {
    leakyBucket.putBack(this.#bucket, this.#leaky, cost, now);
  }

  wait(_cost: MicroTokens, ahead: MicroTokens, now: Milliseconds): Milliseconds {
    return leakyBucket.waitFor(this.#bucket, this.#leaky, ahead, now);
  }

  fresh(now: Milliseconds): Milliseconds {
    return Math.max(0, this.#bucket.freeAt - now);
  }

  adopt(terms: LocalTier): void {
    this.#most = micros(terms);
    const queue = 'queue' in terms ? Math.round(terms.queue * MICRO) : 0;
    this.#leaky = { microsPerMs: perMs(terms), queue };
  }
}
