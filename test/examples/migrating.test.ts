import { describe, expect, it, onTestFinished } from 'vitest';
import { RedisServer } from '../support/redis-server.js';
import { Program } from './program.js';

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
