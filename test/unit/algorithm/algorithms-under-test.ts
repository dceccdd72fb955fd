import * as fixedWindow from '../../../src/algorithm/fixed-window.js';
import * as leakyBucket from '../../../src/algorithm/leaky-bucket.js';
import * as slidingCounter from '../../../src/algorithm/sliding-window-counter.js';
import * as slidingLog from '../../../src/algorithm/sliding-window-log.js';
import type { Windows } from '../../../src/policy/policy.js';
import type { MicroTokens, Milliseconds } from '../../../src/units.js';

/** One counter of any algorithm, asked at times that the test names. */
export interface UnderTest {
  level(now: Milliseconds): MicroTokens;
  /** Charges `cost` if it is there. */
  take(cost: MicroTokens, now: Milliseconds): boolean;
  waitFor(cost: MicroTokens, now: Milliseconds): Milliseconds;
  putBack(cost: MicroTokens, now: Milliseconds): void;
}

/** An algorithm that charges whoever asks, made one that looks first whether the cost is there. */
function charging(
  algorithm: Omit<UnderTest, 'take'> & { charge(cost: MicroTokens, now: Milliseconds): void },
): UnderTest {
  return {
    ...algorithm,
    take(cost, now) {
      if (algorithm.level(now) < cost) return false;
      algorithm.charge(cost, now);
      return true;
    },
  };
}

export function fixed(limit: MicroTokens, windows: Windows): UnderTest {
  const terms = { limit, windowEnd: fixedWindow.windowEnds(windows) };
  const state = fixedWindow.newFixedWindow();
  return charging({
    level: (now) => fixedWindow.levelAt(state, terms, now),
    charge: (cost, now) => fixedWindow.take(state, terms, cost, now),
    waitFor: (cost, now) => fixedWindow.waitFor(state, terms, cost, now),
    putBack: (cost, now) => fixedWindow.putBack(state, cost, now),
  });
}

export function log(limit: MicroTokens, windowMs: Milliseconds): UnderTest {
  const terms = { limit, windowMs };
  const state = slidingLog.newSlidingWindowLog();
  return charging({
    level: (now) => slidingLog.levelAt(state, terms, now),
    charge: (cost, now) => slidingLog.take(state, terms, cost, now),
    waitFor: (cost, now) => slidingLog.waitFor(state, terms, cost, now),
    putBack: (cost, now) => slidingLog.putBack(state, terms, cost, now),
  });
}

export function counter(limit: MicroTokens, windowMs: Milliseconds): UnderTest {
  const terms = { limit, windowMs };
  const state = slidingCounter.newSlidingWindowCounter();
  return charging({
    level: (now) => slidingCounter.levelAt(state, terms, now),
    charge: (cost, now) => slidingCounter.take(state, terms, cost, now),
    waitFor: (cost, now) => slidingCounter.waitFor(state, terms, cost, now),
    putBack: (cost, now) => slidingCounter.putBack(state, terms, cost, now),
  });
}

export function leaky(microsPerMs: number): UnderTest {
  const terms = { microsPerMs, queue: 0 };
  const state = leakyBucket.newLeakyBucket();
  return charging({
    level: (now) => (leakyBucket.mayLeave(state, now) ? Number.POSITIVE_INFINITY : 0),
    charge: (cost, now) => leakyBucket.leave(state, terms, cost, now),
    waitFor: (_, now) => leakyBucket.waitFor(state, terms, 0, now),
    putBack: (cost, now) => leakyBucket.putBack(state, terms, cost, now),
  });
}

export const epochWindows = (lengthMs: Milliseconds): Windows => ({ by: 'epoch', length: lengthMs * 1_000 });
export const fromFirstUse = (lengthMs: Milliseconds): Windows => ({ by: 'first-use', length: lengthMs * 1_000 });

/** Everything that counts up to `limit` in windows of `windowMs`. */
export const WINDOWS: Readonly<Record<string, (limit: MicroTokens, windowMs: Milliseconds) => UnderTest>> = {
  'fixed window, of the calendar': (limit, windowMs) => fixed(limit, epochWindows(windowMs)),
  'fixed window, from first use': (limit, windowMs) => fixed(limit, fromFirstUse(windowMs)),
  'sliding window log': log,
  'sliding window counter': counter,
};

export const daily = (limit: MicroTokens, timeZone: string): UnderTest =>
  fixed(limit, { by: 'calendar', unit: 'day', timeZone, length: 86_400_000_000 });
