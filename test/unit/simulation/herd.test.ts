import { describe, expect, it } from 'vitest';
import type { PolicyDocument } from '../../../src/index.js';
import { type Scenario, simulate } from '../../../src/simulation/index.js';

/** About 2,000 clients come within a second, and do as they are told until they have passed. */
async function herd(tier: Omit<PolicyDocument, 'name'>, instances: number, retryAfter: 'seconds' | 'spread') {
  const scenario: Scenario = {
    duration: '60s',
    policies: [{ name: 'api', ...tier }],
    fleet: [{ instances, traffic: { rate: 2_000 / instances, until: '1s', retries: 1_000, retryAfter } }],
  };
  const { groups, windowsOver } = await simulate(scenario);
  const [{ calls, requests, admitted, longestWaitMs }] = groups as [(typeof groups)[0]];
  expect(windowsOver).toBe(0);
  expect(calls).toBeGreaterThan(1_900);
  expect(admitted).toBe(calls);
  return { perAdmitted: requests / admitted, longestWaitMs };
}

const tokens = { rate: 100, burst: 100 };

describe('a herd of 2,000 that was denied together, and obeys', () => {
  it('comes back ten times each where all are told the same', async () => {
    expect((await herd({ local: tokens }, 1, 'seconds')).perAdmitted).toBeCloseTo(9.7, 1);
    expect((await herd({ ceiling: tokens }, 4, 'seconds')).perAdmitted).toBeCloseTo(9.7, 1);
  });

  it('comes back once each where every one is told a slot of its own: at most 2.5 requests for each that passes', async () => {
    const alone = await herd({ local: tokens }, 1, 'spread');
    expect(alone.perAdmitted).toBeCloseTo(1.95, 1);
    // The limit needs 19 s for them.
    expect(alone.longestWaitMs).toBeLessThanOrEqual(20_000);
    for (const instances of [1, 4, 20]) {
      const fleet = await herd({ ceiling: tokens }, instances, 'spread');
      expect(fleet.perAdmitted).toBeLessThanOrEqual(2.5);
      expect(fleet.longestWaitMs).toBeLessThanOrEqual(30_000);
    }
  });
});

describe('those who wait in fifty instances at once', () => {
  it.each([
    ['bucket', { rate: 400, burst: 400 }],
    ['window', { algorithm: 'fixed-window' as const, limit: 400, window: '1s' as const }],
  ])('do not come to the ceiling at one moment, though they wake when they are told: a %s', async (_, ceiling) => {
    const { series, groups } = await simulate({
      duration: '8s',
      sample: '10ms',
      policies: [{ name: 'api', ceiling }],
      fleet: [{ instances: 50, traffic: { rate: 15, maxWaitMs: 2_000 } }],
    });
    expect(groups[0]?.waited).toBeGreaterThan(1_000);
    expect(Math.max(...series.storeCalls.slice(200))).toBeLessThanOrEqual(15);
  });
});
