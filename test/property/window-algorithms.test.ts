import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  counter,
  epochWindows,
  fixed,
  leaky,
  log,
  type UnderTest,
  WINDOWS,
} from '../unit/algorithm/algorithms-under-test.js';

const WINDOW_MS = 1_000;

interface Charge {
  readonly at: number;
  readonly cost: number;
}

/** Attempts: how much later than the last one, at any fraction of a millisecond, and which part of the limit. */
const attempts = (earliestMs = 0) =>
  fc.array(
    fc.tuple(
      fc.oneof(
        fc.constant(0),
        fc.integer({ min: earliestMs, max: WINDOW_MS }),
        fc.double({ min: earliestMs, max: WINDOW_MS / 5, noNaN: true }),
        fc.constantFrom(WINDOW_MS, WINDOW_MS - 1, WINDOW_MS * 2.5),
      ),
      fc.double({ min: 0, max: 0.6, noNaN: true }),
    ),
    { minLength: 1, maxLength: 80 },
  );
const limits = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 10 ** 12 }));
const starts = fc.double({ min: 0, max: 1e12, noNaN: true });

/** What of the attempts is admitted; where the clock was set back, at the latest time at which something had been. */
function admittedBy(algorithm: UnderTest, limit: number, start: number, attempts: [number, number][]): Charge[] {
  const admitted: Charge[] = [];
  let now = start;
  let latest = Number.NEGATIVE_INFINITY;
  for (const [laterMs, part] of attempts) {
    now += laterMs;
    const cost = Math.max(1, Math.round(part * limit));
    if (!algorithm.take(cost, now)) continue;
    latest = Math.max(latest, now);
    admitted.push({ at: latest, cost });
  }
  return admitted;
}

const sum = (charges: readonly Charge[]): number => charges.reduce((sum, { cost }) => sum + cost, 0);

/** The most that any window of `windowMs` holds, wherever it begins. */
function mostInAnyWindow(charges: readonly Charge[], windowMs: number): number {
  return Math.max(
    0,
    ...charges.map(({ at: from }, i) => sum(charges.slice(i).filter(({ at }) => at - from < windowMs))),
  );
}

describe('a fixed window', () => {
  it('admits its limit at most in each window, also where the clock is set back', () => {
    fc.assert(
      fc.property(limits, starts, attempts(-WINDOW_MS * 3), (limit, start, attempts) => {
        const startOf = (at: number): number => Math.floor(at / WINDOW_MS) * WINDOW_MS;
        const inWindow = new Map<number, number>();
        for (const { at, cost } of admittedBy(fixed(limit, epochWindows(WINDOW_MS)), limit, start, attempts)) {
          const start = startOf(at);
          inWindow.set(start, (inWindow.get(start) ?? 0) + cost);
        }
        for (const used of inWindow.values()) expect(used).toBeLessThanOrEqual(limit);
      }),
      { numRuns: 500 },
    );
  });

  it('admits twice its limit at most in a window of the same length that begins elsewhere', () => {
    fc.assert(
      fc.property(limits, starts, attempts(), (limit, start, attempts) => {
        const admitted = admittedBy(fixed(limit, epochWindows(WINDOW_MS)), limit, start, attempts);
        expect(mostInAnyWindow(admitted, WINDOW_MS)).toBeLessThanOrEqual(2 * limit);
      }),
    );
  });
});

describe('a sliding window log', () => {
  it('admits its limit at most in every window, wherever it begins, also where the clock is set back', () => {
    fc.assert(
      fc.property(limits, starts, attempts(-WINDOW_MS), (limit, start, attempts) => {
        const admitted = admittedBy(log(limit, WINDOW_MS), limit, start, attempts);
        expect(mostInAnyWindow(admitted, WINDOW_MS)).toBeLessThanOrEqual(limit);
      }),
      { numRuns: 500 },
    );
  });

  it('refuses only what would be too much', () => {
    fc.assert(
      fc.property(limits, starts, attempts(), (limit, start, attempts) => {
        const algorithm = log(limit, WINDOW_MS);
        const admitted: Charge[] = [];
        let now = start;
        for (const [laterMs, part] of attempts) {
          now += laterMs;
          const cost = Math.max(1, Math.round(part * limit));
          const used = sum(admitted.filter(({ at }) => now - at < WINDOW_MS));
          expect(algorithm.level(now)).toBe(limit - used);
          if (algorithm.take(cost, now)) admitted.push({ at: now, cost });
          else expect(used + cost).toBeGreaterThan(limit);
        }
      }),
    );
  });
});

describe('a sliding window counter', () => {
  it('is off by −previous·f to +previous·(1 − f), whatever comes', () => {
    fc.assert(
      fc.property(limits, starts, attempts(), (limit, start, attempts) => {
        const algorithm = counter(limit, WINDOW_MS);
        const admitted: Charge[] = [];
        let now = start;
        for (const [laterMs, part] of attempts) {
          now += laterMs;
          const cost = Math.max(1, Math.round(part * limit));
          const begins = Math.floor(now / WINDOW_MS) * WINDOW_MS;
          const passed = (now - begins) / WINDOW_MS;
          const previous = sum(admitted.filter(({ at }) => at < begins && at >= begins - WINDOW_MS));
          const truth = sum(admitted.filter(({ at }) => now - at < WINDOW_MS));
          const error = limit - algorithm.level(now) - truth;
          // A micro-token for rounding, and what doubles of this size can't tell apart.
          const rounding = 1 + limit * 1e-9;
          expect(error).toBeGreaterThanOrEqual(-previous * passed - rounding);
          expect(error).toBeLessThanOrEqual(previous * (1 - passed) + rounding);
          if (algorithm.take(cost, now)) admitted.push({ at: now, cost });
        }
        expect(mostInAnyWindow(admitted, WINDOW_MS)).toBeLessThanOrEqual(2 * limit);
      }),
      { numRuns: 500 },
    );
  });

  it('errs by √(previous·f·(1 − f)) on average on random traffic, as often to one side as to the other', () => {
    const LIMIT = 10_000;
    const PER_WINDOW = 900;
    const random = mulberry(20_261_130);
    const algorithm = counter(LIMIT, WINDOW_MS);
    const times: number[] = [];
    let squares = 0;
    let expected = 0;
    let errors = 0;
    let looked = 0;
    for (let now = 0; now < 2_000 * WINDOW_MS; ) {
      now += (-Math.log(1 - random()) * WINDOW_MS) / PER_WINDOW;
      algorithm.take(1, now);
      times.push(now);
      while (now - (times[0] as number) > 2 * WINDOW_MS) times.shift();
      if (random() > 0.01 || now < 2 * WINDOW_MS) continue;
      const begins = Math.floor(now / WINDOW_MS) * WINDOW_MS;
      const passed = (now - begins) / WINDOW_MS;
      const previous = times.filter((at) => at < begins && at >= begins - WINDOW_MS).length;
      const error = LIMIT - algorithm.level(now) - times.filter((at) => now - at < WINDOW_MS).length;
      squares += error * error;
      expected += previous * passed * (1 - passed);
      errors += error;
      looked += 1;
    }
    expect(looked).toBeGreaterThan(10_000);
    expect(squares / expected).toBeGreaterThan(0.9);
    expect(squares / expected).toBeLessThan(1.1);
    expect(Math.abs(errors / looked)).toBeLessThan(1);
    expect(Math.sqrt(squares / looked)).toBeLessThan(Math.sqrt(PER_WINDOW) / 2);
  });
});

describe('a leaky bucket', () => {
  it('lets requests leave c ÷ rate apart at least, c being the cost of the earlier one', () => {
    const PER_MS = 3;
    fc.assert(
      fc.property(starts, attempts(-WINDOW_MS), (start, attempts) => {
        const admitted = admittedBy(leaky(PER_MS), 600, start, attempts);
        for (const [i, { at }] of admitted.entries()) {
          const before = admitted[i - 1];
          if (before) expect(at - before.at).toBeGreaterThanOrEqual((before.cost / PER_MS) * (1 - 1e-9) - 1e-3);
        }
      }),
      { numRuns: 500 },
    );
  });
});

const ALGORITHMS = {
  ...WINDOWS,
  'leaky bucket': (limit: number, windowMs: number) => leaky(limit / windowMs),
};

describe.each(Object.entries(ALGORITHMS))('the wait of a %s', (_, make) => {
  it('is exact: refused at every moment before it, allowed at it', () => {
    fc.assert(
      fc.property(
        limits,
        starts,
        attempts(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (limit, start, attempts, x) => {
          const algorithm = make(limit, WINDOW_MS);
          let now = start;
          for (const [laterMs, part] of attempts) {
            now += laterMs;
            algorithm.take(Math.max(1, Math.round(part * limit)), now);
          }
          const cost = Math.max(1, Math.round(x * limit));
          const wait = algorithm.waitFor(cost, now);
          expect(Number.isInteger(wait)).toBe(true);
          expect(algorithm.level(now) >= cost).toBe(wait === 0);
          expect(algorithm.level(now + wait)).toBeGreaterThanOrEqual(cost);
          for (const before of [1, 2, wait / 2, wait - 1]) {
            // At the very least a whole millisecond earlier: times between two of them are rounded up.
            if (before >= 1 && before <= wait) expect(algorithm.level(now + wait - before)).toBeLessThan(cost);
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  it('changes nothing', () => {
    fc.assert(
      fc.property(limits, starts, attempts(), (limit, start, attempts) => {
        const [asked, left] = [make(limit, WINDOW_MS), make(limit, WINDOW_MS)];
        let now = start;
        for (const [laterMs, part] of attempts) {
          now += laterMs;
          const cost = Math.max(1, Math.round(part * limit));
          asked.waitFor(cost, now);
          asked.level(now + WINDOW_MS * 10);
          expect(asked.take(cost, now)).toBe(left.take(cost, now));
          expect(asked.level(now)).toBe(left.level(now));
        }
      }),
    );
  });
});

describe.each(Object.entries(WINDOWS))('what is put back into a %s', (_, make) => {
  it('can be taken again, and never more than the limit', () => {
    fc.assert(
      fc.property(
        limits,
        starts,
        attempts(),
        fc.double({ min: 0, max: 3, noNaN: true }),
        (limit, start, attempts, x) => {
          const algorithm = make(limit, WINDOW_MS);
          let now = start;
          for (const [laterMs, part] of attempts) {
            now += laterMs;
            const cost = Math.max(1, Math.round(part * limit));
            const before = algorithm.level(now);
            if (!algorithm.take(cost, now)) continue;
            algorithm.putBack(cost, now);
            expect(algorithm.level(now)).toBe(before);
            algorithm.take(cost, now);
          }
          algorithm.putBack(Math.round(x * limit), now);
          expect(algorithm.level(now)).toBeLessThanOrEqual(limit);
          for (let later = 0; later < 3; later++) expect(algorithm.level(now + later * 400)).toBeLessThanOrEqual(limit);
        },
      ),
    );
  });
});

/** A small seeded generator, so that the traffic is the same each time. */
function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
