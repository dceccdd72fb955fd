import { describe, expect, it } from 'vitest';
import { type Report, type Scenario, simulate } from '../../../src/simulation/index.js';

/** The scenarios of `npm run bench -- shares`, scaled down, with their targets. */
async function run(rate: number, burst: number, fleet: Scenario['fleet'], more: Partial<Scenario> = {}) {
  const policies = [{ name: 'api', ceiling: { rate, burst } }];
  const report = await simulate({ duration: '13s', warmUp: '3s', policies, fleet, ...more });
  expect(report.windowsOver).toBe(0);
  const [bucket] = report.buckets;
  const fairness = bucket?.fairness;
  return {
    report,
    utilisation: bucket?.utilisation ?? 0,
    jain: fairness?.jain ?? 0,
    smallest: fairness?.smallest ?? 0,
  };
}

function partDenied(report: Report, name: string): number {
  const group = report.groups.find((group) => group.name === name);
  return group ? group.denied / group.calls : 1;
}

describe('shares', { timeout: 20_000 }, () => {
  it('are even in an even fleet that asks for twice what there is, for a handful of calls a second', async () => {
    const { utilisation, jain, smallest, report } = await run(200, 200, [{ instances: 5, traffic: { rate: 80 } }]);
    expect(utilisation).toBeGreaterThan(0.98);
    expect(jain).toBeGreaterThan(0.995);
    expect(smallest).toBeGreaterThan(0.9);
    expect(report.store.callsPerInstanceSecond).toBeLessThan(6);
  });

  it('leave the light ones what they ask for beside a heavy one, and the heavy one all the rest', async () => {
    const { utilisation, jain, report } = await run(200, 200, [
      { name: 'heavy', instances: 1, traffic: { rate: 1_000 } },
      { name: 'light', instances: 9, traffic: { rate: 8 } },
    ]);
    expect(utilisation).toBeGreaterThan(0.99);
    expect(jain).toBeGreaterThan(0.99);
    expect(partDenied(report, 'light')).toBeLessThan(0.01);
  });

  it('use up a small burst that is asked for exactly its rate', async () => {
    const { utilisation, report } = await run(400, 40, [{ instances: 8, traffic: { rate: 50 } }]);
    expect(utilisation).toBeGreaterThan(0.93);
    expect(report.store.callsPerInstanceSecond).toBeLessThan(30);
  });

  it('reach everybody where there are fewer tokens than instances', async () => {
    const fleet = [{ instances: 20, traffic: { rate: 0.125 } }];
    const { utilisation, jain, smallest, report } = await run(1, 5, fleet, { duration: '400s', warmUp: '40s' });
    expect(utilisation).toBeGreaterThan(0.97);
    expect(jain).toBeGreaterThan(0.97);
    expect(smallest).toBeGreaterThan(0.5);
    expect(report.store.callsPerSecond).toBeLessThan(2.5);
  });

  it('deny next to nothing while demand fits', async () => {
    const { report } = await run(200, 200, [{ instances: 5, traffic: { rate: 36 } }]);
    expect(report.buckets[0]?.falseDenials).toBeLessThan(0.001);
    expect(report.store.callsPerInstanceSecond).toBeLessThan(4);
  });

  it('move with the load within a second', async () => {
    const { report } = await run(200, 200, [
      { name: 'before', instances: 4, traffic: { rate: 100, until: '8s' } },
      { name: 'after', instances: 4, traffic: { rate: 100, from: '8s' } },
    ]);
    const settled = report.settled.find(({ after }) => after === 'traffic of after began');
    expect(settled?.inMs).toBeLessThanOrEqual(1_000);
  });

  it('let a cost of 0.9 B pass within twice the time to fill the bucket, and the others go on', async () => {
    const { report, utilisation } = await run(200, 100, [
      { name: 'others', instances: 6, traffic: { rate: 60 } },
      {
        name: 'large',
        instances: 1,
        traffic: { shape: 'cron', size: 1, every: '6s', cost: 90, maxWaitMs: 2_000 },
      },
    ]);
    expect(partDenied(report, 'large')).toBe(0);
    expect(report.groups[1]?.longestWaitMs).toBeLessThan(1_000);
    expect(utilisation).toBeGreaterThan(0.93);
  });

  it('keep a fleet busy whose every cost is a fifth of the burst', async () => {
    const { utilisation } = await run(200, 200, [{ instances: 6, traffic: { rate: 1.7, cost: 40 } }], {
      duration: '43s',
    });
    expect(utilisation).toBeGreaterThan(0.9);
  });

  it('cost one call for a key that is asked once, and hold nothing once its lease is over', async () => {
    const { report } = await run(10, 10, [
      { instances: 3, traffic: { rate: 20, key: { count: 100_000_000 }, until: '12s' } },
    ]);
    expect(report.store.calls).toBeLessThanOrEqual((report.groups[0]?.calls ?? 0) + 1);
    expect(report.outstanding).toBe(0);
    expect(report.stranded).toBe(0);
  });

  it('go back within a second from keys that have gone idle', async () => {
    const { report } = await run(200, 200, [
      { name: 'all', instances: 5, traffic: { rate: 20, until: '8s' } },
      {
        name: 'late',
        instances: 1,
        traffic: { shape: 'cron', size: 1, every: '9s', from: '9s', cost: 200, maxWaitMs: 5 },
      },
    ]);
    expect(partDenied(report, 'late')).toBe(0);
  });
});
