import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Scenario } from '../../src/demo/scenario.js';
import { type FleetHistory, judge } from '../../src/demo/verdict.js';
import { NatsServer } from '../support/nats-server.js';
import { RedisServer } from '../support/redis-server.js';

/** Instances are processes of their own: they run what is built. */
const WORKER = fileURLToPath(new URL('../../dist/demo/worker.js', import.meta.url));
const LEASE_MS = 2_000;
const DURATION_MS = 14_000;
const TERMS = { rate: 600, burst: 600 };
const TIGHTER = { rate: 300, burst: 300 };
const KILLED = 5;
const FROZEN = 2;

describe('a fleet of processes on real servers', () => {
  it('stays within its bound and uses its ceiling while it is killed, frozen and tightened', {
    timeout: 60_000,
  }, async () => {
    expect(existsSync(WORKER), 'npm run build has been run').toBe(true);
    const [redis, nats] = await Promise.all([RedisServer.start(), NatsServer.start()]);
    let history: FleetHistory;
    try {
      history = await Scenario.run({
        instances: 6,
        durationMs: DURATION_MS,
        terms: TERMS,
        redis: redis.url,
        nats: nats.url,
        worker: WORKER,
        events: [
          { atMs: 3_000, label: 'SIGKILL', run: (scenario) => scenario.killInstance(KILLED) },
          { atMs: 4_000, label: 'SIGSTOP', run: (scenario) => scenario.freeze(FROZEN, 3 * LEASE_MS) },
          { atMs: 8_000, label: 'tightened', run: (scenario) => scenario.publish(TIGHTER) },
        ],
      });
    } finally {
      await Promise.all([redis.stop(), nats.stop()]);
    }

    const verdict = judge(history);
    expect(verdict.windows.map(({ phase }) => phase)).toEqual(['before', 'across', 'after']);
    for (const window of verdict.windows) expect(window.headroom, JSON.stringify(window)).toBeGreaterThanOrEqual(0);
    expect(verdict.ok).toBe(true);
    expect(verdict.measuredFromMs).toBe(2_000);
    expect(verdict.utilisation).toBeGreaterThanOrEqual(0.97);

    const stopped = history.instances[FROZEN]?.absent[0];
    const whileStopped = history.instances[FROZEN]?.admissions.filter(
      (at) => stopped !== undefined && at > stopped.from + 50 && at < stopped.to,
    );
    expect(whileStopped).toHaveLength(0);
    const afterwards = history.instances[FROZEN]?.admissions.filter((at) => at > (stopped?.to ?? 0));
    expect(afterwards?.length, 'the frozen instance takes part again').toBeGreaterThan(0);
    expect(history.instances[KILLED]?.admissions.length, 'the killed one had taken part').toBeGreaterThan(0);
  });
});
