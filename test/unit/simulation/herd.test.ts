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
