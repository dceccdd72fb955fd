import { describe, expect, it } from 'vitest';
import { createLimiter } from '../../src/index.js';
import { ManualTime, MemoryCeiling, memoryPolicySource, storeClock } from '../../src/testing.js';

describe('ManualTime', () => {
  it('stands still until it is moved, and runs what falls due in order', async () => {
    const time = new ManualTime(100, 5_000);
    const log: string[] = [];
    time.after(20, () => log.push(`b ${time.now()}`));
    time.after(10, () => {
      log.push(`a ${time.now()}`);
      time.after(5, () => log.push(`a2 ${time.now()}`));
    });
    time.after(20, () => log.push(`c ${time.now()}`));
    time.after(0, () => log.push(`now ${time.now()}`));
    time.after(50, () => log.push('never')).cancel();
    expect([time.now(), time.wallNow(), time.pending, log]).toEqual([100, 5_000, 4, []]);
    await time.advance(30);
    expect(log).toEqual(['now 100', 'a 110', 'a2 115', 'b 120', 'c 120']);
    expect([time.now(), time.wallNow(), time.pending]).toEqual([130, 5_030, 0]);
  });

  it('lets promises settle between two timers', async () => {
    const time = new ManualTime();
    const log: string[] = [];
    time.after(1, () => void Promise.resolve().then(() => log.push('promise')));
    time.after(1, () => log.push('timer'));
    await time.advance(1);
    expect(log).toEqual(['promise', 'timer']);
  });

  it('can stall, and can step the wall clock alone', async () => {
    const time = new ManualTime(0, 0);
    let ran = 0;
    time.after(10, () => {
      ran += 1;
    });
    time.stall(50);
    expect([time.now(), time.wallNow(), ran]).toEqual([50, 50, 0]);
    time.stepWall(-1_000);
    expect([time.now(), time.wallNow()]).toEqual([50, -950]);
    await time.advance(0);
    expect([time.now(), ran]).toEqual([50, 1]);
  });
});

describe('the testing kit', () => {
  it('puts several limiters on one clock, one ceiling and one source of policies', async () => {
    const time = new ManualTime();
    const ceiling = new MemoryCeiling({ clock: storeClock(time) });
    const policySource = memoryPolicySource([{ name: 'api', version: 1, ceiling: { rate: 1, burst: 10 } }]);
    const make = () => createLimiter({ time, ceiling, policySource, telemetry: false });
    const [a, b] = [await make(), await make()];
    let passed = 0;
    for (let i = 0; i < 20; i++) for (const limiter of [a, b]) passed += Number(limiter.policy('api').tryAcquire('k'));
    // Not more than the ceiling has; how the two share it is the ceiling's business.
    expect(passed).toBeGreaterThan(2);
    expect(passed).toBeLessThanOrEqual(10);
    await a.policies.publish({ name: 'api', ceiling: { rate: 1, burst: 5 } });
    expect(b.policies.get('api')?.ceiling).toEqual({ rate: 1, burst: 5 });
    const closing = Promise.all([a.close(), b.close()]);
    await time.advance(1);
    await closing;
    expect(time.pending).toBe(0);
  });
});
