import { describe, expect, it } from 'vitest';
import { type Scenario, simulate } from '../../../src/simulation/index.js';

/** Everything at once: loss, doubles, jitter, crashes, stalls, partitions, a slow store, drift and a policy change. */
const troubled: Scenario = {
  duration: '6s',
  warmUp: '1s',
  policies: [{ name: 'api', ceiling: { rate: 200, burst: 50 } }],
  fleet: [
    { name: 'web', instances: 6, drift: 0.005, traffic: [{ rate: 40 }, { shape: 'bursts', size: 10, every: '500ms' }] },
    { name: 'jobs', instances: 2, traffic: { shape: 'cron', size: 5, every: '1s', spread: '20ms', maxWaitMs: 300 } },
    { name: 'polite', instances: 1, traffic: { shape: 'steady', rate: 30, retries: 2 } },
  ],
  network: { roundTripMs: 2, jitterMs: 5, loss: 0.05, duplication: 0.05 },
  events: [
    { at: '1500ms', kind: 'crash', instances: 2, restartAfter: '300ms' },
    { at: '2s', kind: 'stall', instances: 2, for: '700ms' },
    { at: '2500ms', kind: 'partition', instances: 2, from: 'both', for: '400ms' },
    { at: '3s', kind: 'slow', roundTripMs: 150, for: '300ms' },
    { at: '4s', kind: 'publish', policy: { name: 'api', ceiling: { rate: 100, burst: 20 } } },
    { at: '5s', kind: 'store-down', for: '200ms' },
  ],
};

describe('simulate', { timeout: 20_000 }, () => {
  it('gives the same report, to the last digit, for the same scenario and seed', async () => {
    const first = await simulate(troubled);
    const second = await simulate(structuredClone(troubled));
    expect(second).toEqual(first);
    expect(await simulate({ ...troubled, seed: 2 })).not.toEqual(first);
  });

  it('finds no window over B + R·w, whatever happens on the way', async () => {
    for (const seed of [1, 2, 3]) {
      const report = await simulate({ ...troubled, seed });
      expect(report).toMatchObject({ windowsOver: 0 });
      expect(report.buckets[0]?.admitted).toBeGreaterThan(300);
      expect(report.store.failures).toBeGreaterThan(0);
    }
  });

  it.each([
    ['leaky-bucket', { algorithm: 'leaky-bucket', rate: 20, queue: 5 }],
    ['fixed-window', { algorithm: 'fixed-window', limit: 20, window: '1s' }],
    ['sliding-window-log', { algorithm: 'sliding-window-log', limit: 20, window: '1s' }],
    ['sliding-window-counter', { algorithm: 'sliding-window-counter', limit: 20, window: '1s' }],
  ] as const)('runs a local tier that is a %s', async (_name, local) => {
    const { groups } = await simulate({
      duration: '3s',
      policies: [{ name: 'api', local, ceiling: { rate: 1_000, burst: 1_000 } }],
      fleet: [{ instances: 2, traffic: { rate: 50 } }],
    });
    expect(groups[0]?.admitted).toBeGreaterThan(60);
    expect(groups[0]?.denied).toBeGreaterThan(60);
  });

  it('sees the windows that go over where the outage mode lets them', async () => {
    const report = await simulate({
      duration: '8s',
      policies: [{ name: 'api', ceiling: { rate: 100, burst: 100 }, outage: { mode: 'allow' } }],
      fleet: [{ instances: 5, traffic: { rate: 100 } }],
      events: [{ at: '2s', kind: 'store-down', for: '5s' }],
    });
    expect(report.windowsOver).toBeGreaterThan(0);
    expect(report.worstWindow).toBeGreaterThan(100);
  });

  it('keeps the ceiling over loss of data, a stale failover, an eviction and a clock step, as far as the design says', async () => {
    const fleet: Scenario = {
      duration: '12s',
      newStore: 'empty',
      policies: [{ name: 'api', ceiling: { rate: 200, burst: 100 } }],
      fleet: [{ instances: 5, traffic: { rate: 80 } }],
    };
    const failover = await simulate({ ...fleet, events: [{ at: '6s', kind: 'stale-failover', lag: '500ms' }] });
    expect(failover.windowsOver).toBe(0);
    const back = await simulate({ ...fleet, events: [{ at: '6s', kind: 'clock-step', by: -30_000 }] });
    expect(back.windowsOver).toBe(0);
    const lost = await simulate({ ...fleet, events: [{ at: '6s', kind: 'store-loss' }] });
    // Until their holders have called again, wallets that the new store knows nothing of: less than the burst.
    expect(lost.worstWindow).toBeLessThan(100);
    const forward = await simulate({ ...fleet, events: [{ at: '6s', kind: 'clock-step', by: 30_000 }] });
    expect(forward.worstWindow).toBeLessThan(200);
    for (const report of [failover, back, lost, forward]) expect(report.buckets[0]?.admitted).toBeGreaterThan(1_500);
  });

  it('says when the fleet had settled after each event', async () => {
    const report = await simulate({
      duration: '10s',
      policies: [{ name: 'api', ceiling: { rate: 200, burst: 200 } }],
      fleet: [{ name: 'web', instances: 4, traffic: { rate: 100 } }],
      events: [{ at: '3s', kind: 'store-down', for: '2s' }],
    });
    expect(report.settled.map(({ after }) => after)).toEqual(['start', 'store-down']);
    expect(report.settled[1]).toMatchObject({ atMs: 5_000 });
    expect(report.settled[1]?.inMs).toBeLessThan(2_000);
  });

  it('counts what a crash leaves behind as stranded', async () => {
    const report = await simulate({
      duration: '3s',
      policies: [{ name: 'api', ceiling: { rate: 1000, burst: 1000 } }],
      fleet: [{ instances: 4, traffic: { rate: 100 } }],
      events: [{ at: '2s', kind: 'crash' }],
    });
    expect(report.stranded).toBeGreaterThan(0);
    expect(report.groups[0]?.calls).toBeLessThan(1_000);
  });

  it('shares a ceiling by weight', async () => {
    const report = await simulate({
      duration: '12s',
      warmUp: '2s',
      policies: [{ name: 'api', ceiling: { rate: 200, burst: 200 } }],
      fleet: [
        { name: 'one', instances: 3, traffic: { rate: 100 } },
        { name: 'three', instances: 3, weight: 3, traffic: { rate: 100 } },
      ],
    });
    const [one, three] = report.groups.map(({ admitted }) => admitted) as [number, number];
    expect(three / one).toBeGreaterThan(2.6);
    expect(three / one).toBeLessThan(3.4);
    expect(report.buckets[0]?.fairness?.jain).toBeGreaterThan(0.99);
  });

  it('runs over many keys with one round trip a tick, and over a policy without a ceiling', async () => {
    const report = await simulate({
      duration: '2s',
      policies: [
        { name: 'api', ceiling: { rate: 100, burst: 100 } },
        { name: 'own', local: { rate: 5, burst: 5 } },
      ],
      fleet: [
        {
          instances: 3,
          traffic: [
            { rate: 200, key: { count: 1_000, skew: 1 } },
            { policy: 'own', rate: 20, verb: 'tryAcquire' },
          ],
        },
      ],
    });
    expect(report.others.buckets).toBeGreaterThan(100);
    expect(report.store.mostTripsATick).toBe(1);
    expect(report.buckets).toMatchObject([{ policy: 'own', utilisation: undefined, worstWindow: undefined }]);
    expect(report.buckets[0]?.admitted).toBeLessThanOrEqual(3 * 15);
  });

  it('ends when it is told to, and tells how far it is', async () => {
    const seen: number[] = [];
    const controller = new AbortController();
    const run = simulate(
      {
        duration: '1h',
        policies: [{ name: 'api', ceiling: { rate: 1000, burst: 1000 } }],
        fleet: [{ instances: 10, traffic: { rate: 50 } }],
      },
      {
        signal: controller.signal,
        onProgress: ({ atMs }) => {
          seen.push(atMs);
          if (seen.length === 2) controller.abort(new Error('enough'));
        },
      },
    );
    await expect(run).rejects.toThrow('enough');
    expect(seen[1]).toBeGreaterThan(seen[0] as number);
  });

  it('runs a ceiling that is a leaky bucket, whose rate it uses and keeps to', async () => {
    const report = await simulate({
      duration: '6s',
      policies: [{ name: 'api', ceiling: { algorithm: 'leaky-bucket', rate: 100, queue: 20 } }],
      fleet: [{ instances: 4, traffic: { rate: 60, maxWaitMs: 300 } }],
      network: { roundTripMs: 2, jitterMs: 5, loss: 0.01, duplication: 0.02 },
    });
    expect(report).toMatchObject({ windowsOver: 0 });
    expect(report.buckets[0]?.admitted).toBeGreaterThan(500);
    expect(report.buckets[0]?.admitted).toBeLessThanOrEqual(601);
  });
});
