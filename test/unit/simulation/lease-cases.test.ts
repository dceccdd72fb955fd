import { describe, expect, it } from 'vitest';
import { type Report, type Scenario, simulate } from '../../../src/simulation/index.js';

/** Public bug reports about leases and shares (group M), with their numbers. */
async function run(ceiling: { rate: number; burst: number }, scenario: Omit<Scenario, 'policies'>) {
  const report = await simulate({ policies: [{ name: 'api', ceiling, lease: { durationMs: 2_000 } }], ...scenario });
  expect(report.windowsOver).toBe(0);
  return report;
}

const admittedBy = (report: Report, name: string): number =>
  report.groups.find((group) => group.name === name)?.admitted ?? 0;

describe('leases of a fleet', { timeout: 30_000 }, () => {
  it('that died with tokens leave the rest short of them for one lease, and no longer (C149)', async () => {
    const report = await run(
      { rate: 100, burst: 100 },
      {
        duration: '15s',
        warmUp: '5s',
        fleet: [
          { name: 'dies', instances: 1, traffic: { rate: 40 } },
          { name: 'stays', instances: 2, traffic: { rate: 100 } },
        ],
        events: [{ at: '2s', kind: 'crash', instances: { groups: ['dies'] } }],
      },
    );
    expect(report.buckets[0]?.utilisation).toBeGreaterThan(0.99);
  });

  it('give a host that asks once in ten seconds its token while the fleet is below the ceiling (C152)', async () => {
    const report = await run(
      { rate: 15, burst: 15 },
      {
        duration: '2m',
        fleet: [
          { name: 'busy', instances: 1, traffic: { shape: 'steady', rate: 12 } },
          { name: 'calm', instances: 1, traffic: { shape: 'steady', rate: 2 } },
          { name: 'rare', instances: 1, traffic: { shape: 'steady', rate: 0.1, maxWaitMs: 500 } },
        ],
      },
    );
    const rare = report.groups.find(({ name }) => name === 'rare');
    expect(rare?.calls).toBeGreaterThan(9);
    expect(rare?.denied).toBe(0);
  });

  it('deny nobody at a change of leases where there is plenty, 60 ms from the store (C154)', async () => {
    const report = await run(
      { rate: 1_000_000, burst: 1_000_000 },
      {
        duration: '40s',
        warmUp: '20s',
        network: { roundTripMs: 60 },
        fleet: [{ instances: 1, traffic: { rate: 200, verb: 'tryAcquire' } }],
      },
    );
    expect(report.groups[0]?.calls).toBeGreaterThan(3_000);
    expect(report.groups[0]?.denied).toBe(0);
  });

  it('serve equal demand equally (C157)', async () => {
    const report = await run(
      { rate: 600, burst: 600 },
      {
        duration: '15s',
        warmUp: '3s',
        fleet: ['a', 'b', 'c'].map((name) => ({ name, instances: 1, traffic: { rate: 400 } })),
      },
    );
    for (const name of ['a', 'b', 'c']) {
      const share = admittedBy(report, name) / (200 * 12);
      expect(share).toBeGreaterThan(0.9);
      expect(share).toBeLessThan(1.1);
    }
    expect(report.buckets[0]?.fairness?.jain).toBeGreaterThan(0.99);
  });

  it('that fifty instances took at the same moment are not renewed at the same moment (C164)', async () => {
    const report = await run(
      { rate: 5_000, burst: 5_000 },
      { duration: '10s', warmUp: '3s', fleet: [{ instances: 50, traffic: { rate: 200 } }], sample: '100ms' },
    );
    expect(report.buckets[0]?.utilisation).toBeGreaterThan(0.98);
    const calls = report.series.storeCalls.slice(30);
    const mean = calls.reduce((sum, count) => sum + count, 0) / calls.length;
    expect(Math.max(...calls)).toBeLessThan(3 * mean);
  });
});

describe('the outage mode share', { timeout: 30_000 }, () => {
  it('holds four instances to the ceiling together while the store is away (C88)', async () => {
    const report = await simulate({
      duration: '30s',
      policies: [
        {
          name: 'api',
          ceiling: { rate: 100, burst: 100 },
          lease: { durationMs: 1_000 },
          outage: { mode: 'share', fleet: 4 },
        },
      ],
      fleet: [{ instances: 4, traffic: { rate: 100 } }],
      events: [{ at: '10s', kind: 'store-down', for: '10s' }],
    });
    // Four costs on top: each share holds the one that its caller asks for.
    expect(report.worstWindow).toBeLessThanOrEqual(4);
    expect(report.buckets[0]?.utilisation).toBeGreaterThan(0.8);
  });
});
