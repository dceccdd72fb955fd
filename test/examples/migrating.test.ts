import { describe, expect, it, onTestFinished } from 'vitest';
import { RedisServer } from '../support/redis-server.js';
import { outputOf, Program } from './program.js';

/** What a client notices: whether it passed, what it was told, and whether it knows when to come back. */
async function seen(url: string, paths: readonly string[]) {
  const answers: { path: string; status: number; body: string; comesBack: boolean }[] = [];
  for (const path of paths) {
    const response = await fetch(`${url}${path}`);
    const seconds = Number(response.headers.get('retry-after'));
    const body = await response.text();
    answers.push({ path, status: response.status, body, comesBack: seconds >= 1 && seconds <= 60 });
  }
  return answers;
}

const SEVEN_AND_ONE = [...Array<string>(7).fill('/'), '/health'];

describe.each([
  { from: 'express-rate-limit', paths: SEVEN_AND_ONE, refusal: { error: 'Slow down.' } },
  { from: 'fastify-rate-limit', paths: [...SEVEN_AND_ONE, '/search', '/search', '/search'], refusal: undefined },
])('moving over from $from', ({ from, paths, refusal }) => {
  // Of programs as people would write them, none waits longer than usual for a machine that is busy with other tests.
  it.each(['before', 'store', 'after'])(
    'answers a client the same: %s',
    { timeout: 30_000, retry: 2 },
    async (stage) => {
      const redis = await RedisServer.start();
      onTestFinished(() => redis.stop());
      const program = await Program.serve(`docs/migrating/${from}.${stage}.mjs`, { REDIS_URL: redis.url });
      const answers = await seen(program.url, paths);

      const passes = (path: string) => answers.filter((one) => one.path === path).map(({ status }) => status);
      expect(passes('/')).toEqual([200, 200, 200, 200, 200, 429, 429]);
      expect(passes('/health')).toEqual([200]);
      if (paths.includes('/search')) expect(passes('/search')).toEqual([200, 200, 429]);
      for (const { path, status, body, comesBack } of answers) {
        expect(comesBack).toBe(status === 429);
        if (status === 200) expect(body).toBe({ '/': 'hello', '/health': 'ok', '/search': 'found' }[path]);
        else if (refusal) expect(JSON.parse(body)).toEqual(refusal);
      }
    },
  );
});

describe('moving over from rate-limiter-flexible', () => {
  it('prints the same', { timeout: 30_000, retry: 2 }, async () => {
    const redis = await RedisServer.start();
    onTestFinished(() => redis.stop());
    const [before, after] = await Promise.all(
      ['before', 'after'].map((stage) =>
        outputOf([`docs/migrating/rate-limiter-flexible.${stage}.mjs`], { REDIS_URL: redis.url }),
      ),
    );
    expect(after).toEqual(before);
    expect(after?.stdout.match(/found something/g)).toHaveLength(7);
    expect(after?.stdout.match(/has to wait, less than a minute/g)).toHaveLength(3);
  });
});

describe('moving over from bottleneck', () => {
  it('prints the same', { timeout: 30_000 }, async () => {
    const before = await outputOf(['docs/migrating/bottleneck.before.mjs']);
    const after = await outputOf(['docs/migrating/bottleneck.after.mjs']);
    // Downloads that overlap may end in another order on a busy machine.
    expect({ ...after, stdout: sorted(after.stdout) }).toEqual({ ...before, stdout: sorted(before.stdout) });
    expect(after.stdout).toMatch(/^2 at once$/m);
  });
});

describe('moving over from limiter', () => {
  it('prints the same, and takes no less time than the limit asks for', { timeout: 30_000 }, async () => {
    const before = await outputOf(['docs/migrating/limiter.before.mjs']);
    const started = performance.now();
    const after = await outputOf(['docs/migrating/limiter.after.mjs']);
    expect(after).toEqual(before);
    expect(after.stdout).toContain('mail 12 sent\nada looked up\nbob looked up\ncem looked up\ndan refused\n');
    // Five at once, seven more at five a second.
    expect(performance.now() - started).toBeGreaterThanOrEqual(1_400);
  });
});

function sorted(text: string): string[] {
  return text.split('\n').sort();
}
