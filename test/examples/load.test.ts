import { createRequire } from 'node:module';
import { describe, expect, it, onTestFinished } from 'vitest';
import { RedisServer } from '../support/redis-server.js';
import { runNode } from '../support/run-node.js';
import { Program } from './program.js';

const AUTOCANNON = createRequire(import.meta.url).resolve('autocannon/autocannon.js');
/** Of the policy `client` in the example: for all requests of one address together. */
const RATE = 10;
const BURST = 20;
const SECONDS = 4;

/** Asks `url` a number of times a second, over several connections, from a process of its own. */
async function load(url: string, perSecond: number): Promise<Record<string, { count: number }>> {
  const args = ['--json', '--duration', String(SECONDS), '--overallRate', String(perSecond), '--connections', '8', url];
  const { stdout } = await runNode([AUTOCANNON, ...args]);
  return JSON.parse(stdout).statusCodeStats;
}

describe('an Express API in two processes, asked three times as much as it allows', () => {
  it('lets no more pass than the ceiling has, and little less', { timeout: 60_000 }, async () => {
    const redis = await RedisServer.start();
    onTestFinished(() => redis.stop());
    const environment = { REDIS_URL: redis.url };
    const instances = await Promise.all([1, 2].map(() => Program.serve('docs/examples/express-api.mjs', environment)));

    const started = performance.now();
    const each = await Promise.all(instances.map(({ url }) => load(`${url}/quotes`, (3 * RATE) / instances.length)));
    const seconds = (performance.now() - started) / 1_000;

    const count = (status: string) => each.reduce((sum, counts) => sum + (counts[status]?.count ?? 0), 0);
    // Every request was sent and answered within this time, so it holds however slow the machine is.
    expect(count('200')).toBeLessThanOrEqual(BURST + RATE * seconds);
    expect(count('200')).toBeGreaterThanOrEqual(BURST);
    expect(count('429')).toBeGreaterThan(0);
    for (const counts of each) expect(counts['200']?.count, 'each instance takes part').toBeGreaterThan(0);
  });
});
