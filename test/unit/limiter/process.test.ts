import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BuiltPackage } from '../../support/built-package.js';

let built: BuiltPackage;
beforeAll(async () => {
  built = await BuiltPackage.build();
}, 60_000);
afterAll(() => built.remove());

/** A ceiling store that grants a wallet full of tokens at the first call, so that the rest is the hot path alone. */
const GENEROUS = `
  const generous = {
    ready: true,
    lease: (calls) => calls.map((call) => Promise.resolve({
      status: 'granted', seq: call.seq, now: 1_000_000, era: 'e', version: call.version, burst: call.burst,
      rateNum: call.rateNum, rateDen: call.rateDen, granted: call.need > 0 ? 4e12 : 0, level: 0, horizon: 1, next: 0,
      retry: 0, giveBack: false, conflict: false, incarnation: 1, certainUntil: 2e15,
    })),
    heartbeat: async () => 1,
    close: async () => {},
  };
  const time = { now: () => 1, wallNow: () => 1, after: (ms, task) => {
    const timer = setTimeout(task, ms); timer.unref(); return { cancel: () => clearTimeout(timer) };
  } };
`;

describe('a process', () => {
  it('allocates nothing of ours when tryAcquire allows, in either tier', async () => {
    const { code, stdout, stderr } = await built.run(
      `
      import { createLimiter } from 'headgate';
      ${GENEROUS}
      for (const tiers of [
        { local: { rate: 1, burst: 4e6 } },
        { ceiling: { rate: 1, burst: 4e6 } },
        { local: { rate: 1, burst: 4e6 }, ceiling: { rate: 1, burst: 4e6 } },
      ]) {
        const limiter = await createLimiter({ policies: [{ name: 'api', ...tiers }], ceiling: generous, time, telemetry: false });
        const api = limiter.policy('api');
        api.tryAcquire('key');
        await new Promise((resolve) => setTimeout(resolve, 20));
        const run = (times) => {
          let denied = 0;
          for (let i = 0; i < times; i++) if (!api.tryAcquire('key')) denied += 1;
          return denied;
        };
        run(500_000);
        gc();
        gc();
        const before = process.memoryUsage().heapUsed;
        const denied = run(1_000_000);
        const bytes = process.memoryUsage().heapUsed - before;
        console.log(JSON.stringify({ denied, bytes }));
        await limiter.close();
      }
      // What the same measurement says of a loop that does allocate.
      const sink = [];
      const before = process.memoryUsage().heapUsed;
      for (let i = 0; i < 1_000_000; i++) sink[i & 7] = { i };
      console.log(JSON.stringify({ control: process.memoryUsage().heapUsed - before }));
      `,
      // A young generation that is never collected meanwhile: what is allocated stays to be seen.
      ['--expose-gc', '--max-semi-space-size=256', '--min-semi-space-size=256', '--single-threaded-gc'],
    );
    expect([code, stderr]).toEqual([0, '']);
    const results = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(results.pop().control).toBeGreaterThan(8_000_000);
    expect(results).toHaveLength(3);
    for (const { denied, bytes } of results) {
      expect(denied).toBe(0);
      // A million calls; one boxed number each would be 12 or 16 MB. What is left is the engine's, compiling.
      expect(bytes).toBeLessThan(4_000_000);
    }
  }, 30_000);

  it('holds nothing of a million keys that came and went: pages, maps and timers', async () => {
    const { code, stdout, stderr } = await built.run(
      `
      import { createLimiter } from 'headgate';
      let now = 0;
      let tasks = [];
      const time = { now: () => now, wallNow: () => now, after(ms, run) {
        const task = { at: now + ms, run };
        tasks.push(task);
        return { cancel: () => { tasks = tasks.filter((other) => other !== task); } };
      } };
      const passTime = async () => {
        while (tasks.length > 0) {
          const next = tasks.reduce((a, b) => (b.at < a.at ? b : a));
          tasks = tasks.filter((other) => other !== next);
          now = Math.max(now, next.at);
          next.run();
          await Promise.resolve();
        }
      };
      const tiers = { local: { rate: 10, burst: 10 } };
      const policies = [{ name: 'local', ...tiers }, { name: 'both', ...tiers, ceiling: tiers.local }];
      const limiter = await createLimiter({ policies, time, maxKeys: 1e6, telemetry: false });
      const held = () => {
        gc();
        gc();
        const { heapUsed, arrayBuffers } = process.memoryUsage();
        return { keys: limiter.stats().map(({ keys }) => keys), heap: heapUsed / 1e6, pages: arrayBuffers / 1e6 };
      };
      const wave = async (name, keys) => {
        const api = limiter.policy(name);
        for (let i = 0; i < keys; i++) if (!api.tryAcquire(name + now + '-' + i)) throw new Error('denied');
        const full = held();
        await passTime();
        return { full, left: held(), timers: tasks.length };
      };
      await wave('both', 2_000);
      const start = held();
      const waves = [];
      for (let i = 0; i < 4; i++) waves.push(await wave('local', 250_000));
      for (let i = 0; i < 2; i++) waves.push(await wave('both', 20_000));
      console.log(JSON.stringify({ start, waves }));
      await limiter.close();
    `,
      ['--expose-gc'],
    );
    expect([code, stderr]).toEqual([0, '']);
    const { start, waves } = JSON.parse(stdout);
    expect(waves.map(({ full }: { full: { keys: number[] } }) => Math.max(...full.keys))).toEqual([
      250_000, 250_000, 250_000, 250_000, 20_000, 20_000,
    ]);
    for (const { full, left, timers } of waves) {
      expect(full.pages - start.pages).toBeGreaterThan(3);
      expect([left.keys, timers]).toEqual([[0, 0], 0]);
      expect(left.pages - start.pages).toBeLessThan(0.5);
    }
    // A ceiling in this process keeps its own buckets for a while; without one nothing is left at all.
    for (const { left } of waves.slice(0, 4)) expect(left.heap - start.heap).toBeLessThan(2);
  }, 60_000);

  it('is left as it was by a million who waited and gave up: heap, timers and listeners (C52)', async () => {
    const { code, stdout, stderr } = await built.run(
      `
      import { getEventListeners } from 'node:events';
      import { createLimiter } from 'headgate';
      const limiter = await createLimiter({
        policies: [
          { name: 'local', local: { rate: 1, per: '365d', burst: 1 } },
          { name: 'ceiling', ceiling: { rate: 1, per: '365d', burst: 1 } },
          { name: 'seats', concurrency: { limit: 1 } },
        ],
        telemetry: false,
      });
      const [local, ceiling, seats] = ['local', 'ceiling', 'seats'].map((name) => limiter.policy(name));
      for (const verb of [() => local.acquire('k'), () => ceiling.acquire('k'), () => seats.enter('k')]) await verb();
      const round = async (size) => {
        let gaveUp = 0;
        const ends = [];
        // As under the signal of a shutdown: Node would warn of more than ten listeners on one.
        for (let i = 0; i < size; i += 100) {
          const abort = new AbortController();
          const options = { maxWaitMs: Infinity, signal: abort.signal };
          for (let j = 0; j < 100; j += 5) {
            for (const waits of [
              local.acquire('k', options),
              local.acquire('k', options),
              ceiling.acquire('k', options),
              ceiling.acquire('k', options),
              seats.enter('k', options),
            ]) waits.then(null, () => { gaveUp += 1; });
          }
          ends.push(abort);
        }
        await null;
        const waiting = limiter.stats().map(({ waiting }) => waiting);
        for (const abort of ends) abort.abort();
        const listening = ends.filter(({ signal }) => getEventListeners(signal, 'abort').length > 0).length;
        await new Promise(setImmediate);
        return { gaveUp, listening, waiting };
      };
      const state = () => {
        gc();
        return { heap: process.memoryUsage().heapUsed, resources: process.getActiveResourcesInfo().sort().join() };
      };
      await round(10_000);
      await new Promise((resolve) => setTimeout(resolve, 50));
      const before = state();
      const rounds = [];
      for (let i = 0; i < 200; i++) rounds.push(await round(5_000));
      await new Promise((resolve) => setTimeout(resolve, 50));
      const after = state();
      const gaveUp = rounds.reduce((sum, round) => sum + round.gaveUp, 0);
      console.log(JSON.stringify({ gaveUp, most: rounds[0], before, after, left: limiter.stats().map(({ waiting }) => waiting) }));
      await limiter.close();
      `,
      ['--expose-gc'],
    );
    expect([code, stderr]).toEqual([0, '']);
    const { gaveUp, most, before, after, left } = JSON.parse(stdout);
    expect(gaveUp).toBe(1_000_000);
    expect(most).toEqual({ gaveUp: 5_000, listening: 0, waiting: [2_000, 2_000, 0] });
    expect(left).toEqual([0, 0, 0]);
    expect(after.resources).toBe(before.resources);
    expect(after.heap - before.heap).toBeLessThan(2_000_000);
  }, 60_000);

  it('ends by itself though a limiter is open, with keys, leases and timers', async () => {
    const { code, stdout, stderr } = await built.run(`
      import { createLimiter } from 'headgate';
      const policies = [{ name: 'api', local: { rate: 1, per: '1d', burst: 5 }, ceiling: { rate: 100, burst: 100 } }];
      const limiter = await createLimiter({ policies, telemetry: false });
      for (let i = 0; i < 100; i++) limiter.policy('api').tryAcquire('k' + (i % 7));
      await limiter.policy('api').acquire('another');
      console.log('done');
    `);
    expect([code, stdout, stderr]).toEqual([0, 'done\n', '']);
  }, 30_000);

  it('stays alive while an acquire waits, and only then', async () => {
    const { code, stdout, stderr } = await built.run(`
      import { createLimiter } from 'headgate';
      const limiter = await createLimiter({ policies: [{ name: 'api', local: { rate: 10, burst: 1 } }], telemetry: false });
      const api = limiter.policy('api');
      for (let i = 0; i < 4; i++) console.log((await api.acquire('k', { maxWaitMs: 5_000 })).allowed);
    `);
    expect([code, stdout, stderr]).toEqual([0, 'true\ntrue\ntrue\ntrue\n', '']);
  }, 30_000);

  it('survives denials and faults that nobody handles, under --unhandled-rejections=strict (C181)', async () => {
    const { code, stdout, stderr } = await built.run(
      `
      import { createLimiter } from 'headgate';
      const broken = { ready: true, lease: () => { throw new Error('x'); }, heartbeat: () => { throw new Error('y'); }, close: async () => {} };
      const limiter = await createLimiter({
        policies: [{ name: 'local', local: { rate: 1, burst: 1 } }, { name: 'ceiling', ceiling: { rate: 1, burst: 1 } }],
        ceiling: broken, telemetry: false, onTrouble: () => {},
      });
      for (const name of ['local', 'ceiling']) {
        for (let i = 0; i < 3; i++) { limiter.policy(name).acquire('k'); limiter.policy(name).tryAcquire('k'); }
        await Promise.all([limiter.policy(name).acquire('k'), limiter.policy(name).acquire('k', { maxWaitMs: 50 })]);
      }
      await limiter.close();
      console.log('alive');
      `,
      ['--unhandled-rejections=strict'],
    );
    expect([code, stdout, stderr]).toEqual([0, 'alive\n', '']);
  }, 30_000);

  it('warns of no timer that is too long (C34)', async () => {
    const { code, stderr } = await built.run(`
      import { createLimiter } from 'headgate';
      const limiter = await createLimiter({ policies: [{ name: 'api', local: { rate: 1, per: '365d', burst: 1 } }], telemetry: false });
      limiter.policy('api').tryAcquire('k');
      const waiting = limiter.policy('api').acquire('k', { maxWaitMs: 1e12 });
      await new Promise((resolve) => setTimeout(resolve, 30));
      await limiter.close();
      await waiting;
    `);
    expect([code, stderr]).toEqual([0, '']);
  }, 30_000);
});
