import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { production } from '../support/fleet/production.js';
import { type WindowAlgorithm, type WindowResult, type WindowTrouble, windowRun } from '../support/fleet/window-run.js';

/** Random fleets a law; HEADGATE_SEARCH_RUNS=5000 for a night's search. */
const RUNS = Number(process.env['HEADGATE_SEARCH_RUNS'] ?? 40);
/** Micro-tokens that rounding may cost. */
const SLIP = 1e-4;

const LOSSES = 'nor where data is lost or an older copy of it promoted';
const SKEW = 'nor, within what that clock may gain, while it goes back and forth';
const STEP = 'and what was in wallets beyond it, where that clock steps';

const LAWS: readonly [WindowAlgorithm, string, WindowTrouble][] = [
  ['fixed-window', 'admits no more than the limit in each window by the store’s clock', 'none'],
  ['fixed-window', LOSSES, 'losses'],
  ['fixed-window', SKEW, 'skew'],
  ['fixed-window', STEP, 'step'],
  ['sliding-window-log', 'admits no more than the limit in any window of its length', 'none'],
  ['sliding-window-log', LOSSES, 'losses'],
  ['sliding-window-log', SKEW, 'skew'],
  ['sliding-window-log', STEP, 'step'],
  ['sliding-window-counter', 'admits no more than the limit by the estimate of two counts', 'none'],
  ['sliding-window-counter', 'no more than twice that in its length, less what the clock may gain', 'skew'],
];

describe('a fleet under windows, whatever becomes of its messages and processes', () => {
  it.each(LAWS)(
    '(%s) %s',
    async (algorithm, _, trouble) => {
      const results: WindowResult[] = [];
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 31 - 1 }), async (seed) => {
          const result = await windowRun(seed, algorithm, production, trouble);
          results.push(result);
          expect({ seed, over: Math.max(0, result.over - result.atStep - SLIP) }).toEqual({ seed, over: 0 });
        }),
        { numRuns: RUNS, endOnFailure: true },
      );
      const saturation = median(results.map((result) => result.saturation));
      const inAny = Math.max(...results.map(({ inAnyWindow, limit }) => inAnyWindow / limit));
      console.info(
        `${algorithm}: ${saturation.toFixed(2)} of the limits; at most ${inAny.toFixed(2)} of one in any window`,
      );
      // A fleet that hardly asks keeps every law.
      expect(saturation).toBeGreaterThan(0.2);
      if (trouble === 'skew' || trouble === 'step') return;
      expect(inAny).toBeLessThanOrEqual(algorithm === 'sliding-window-log' ? 1 + SLIP : 2 + SLIP);
    },
    600_000,
  );
});

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
