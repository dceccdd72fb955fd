import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { adversary } from '../support/fleet/adversary.js';
import { production } from '../support/fleet/production.js';
import { broken, PROFILES, type Profile } from '../support/fleet/run.js';

/** Random fleets a profile; HEADGATE_SEARCH_RUNS=5000 for a night's search. */
const RUNS = Number(process.env['HEADGATE_SEARCH_RUNS'] ?? 40);

/** Seeds that once failed, kept for good; the commit that repaired each says what it found. */
const KEPT: Readonly<Record<Profile, readonly number[]>> = {
  pure: [34],
  skew: [85],
  steps: [73],
  policy: [1, 53, 88, 528383667],
  loss: [],
  strict: [],
  failover: [46],
  evicted: [],
};

describe('a fleet under one ceiling, whatever becomes of its messages, processes and clocks', () => {
  const saturations: number[] = [];

  for (const profile of PROFILES) {
    it(`admits no more than B + R·w in any window, and Φ never rises faster than R (${profile})`, async () => {
      const own: number[] = [];
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 31 - 1 }), async (seed) => {
          const run = await adversary(seed, profile, production);
          own.push(run.saturation);
          expect({ seed, broken: broken(run) }).toEqual({ seed, broken: [] });
        }),
        // A seed has no smaller one to shrink to: the first that fails is the report.
        { numRuns: RUNS, endOnFailure: true, examples: KEPT[profile].map((seed): [number] => [seed]) },
      );
      saturations.push(...own);
      console.info(`${profile}: ${own.length} fleets, ${median(own).toFixed(2)} of what could be admitted was`);
    }, 600_000);
  }

  afterAll(() => {
    // A fleet that hardly asks keeps every bound: these are driven to theirs.
    expect(median(saturations)).toBeGreaterThanOrEqual(0.8);
  });
});

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
