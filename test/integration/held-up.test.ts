import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, inject, it } from 'vitest';
import { createLimiter, type Limiter } from '../../src/index.js';

const DEADLINE_MS = 50;
const prefix = `held-up-${process.pid}`;
const limiters: Limiter[] = [];
afterEach(() => Promise.all(limiters.splice(0).map((limiter) => limiter.close())));

/** Nothing else runs in this process meanwhile. */
function holdUp(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

// Node runs the timers that are due before it reads what has come, so a deadline comes first though the answer was in time.
it('an answer that has come in time is taken, though the process was held up beyond the deadline', async () => {
  const limiter = await createLimiter({
    policies: [
      { name: 'tokens', ceiling: { rate: 10, burst: 10 } },
      { name: 'paced', ceiling: { algorithm: 'leaky-bucket', rate: 1_000, queue: 10 } },
      { name: 'seats', concurrency: { limit: 1 } },
    ],
    redis: inject('redisUrl'),
    keyPrefix: prefix,
    newStore: 'full',
    telemetry: false,
    callDeadlineMs: DEADLINE_MS,
  });
  limiters.push(limiter);
  let key = 0;
  const asks = {
    acquire: () => limiter.policy('tokens').acquire(`k${key++}`),
    pace: () => limiter.policy('paced').acquire(`k${key++}`),
    enter: () => limiter.policy('seats').enter(`k${key++}`),
    block: () =>
      limiter
        .policy('tokens')
        .block('other', 1_000)
        .then(() => ({ allowed: true })),
  };
  // Scripts are sent once, and then known by their names.
  for (const ask of Object.values(asks)) await ask();
  const answers: Record<string, boolean> = {};
  for (const [name, ask] of Object.entries(asks)) {
    const answer = ask();
    // What is gathered in a turn goes out at its end; the answer takes no longer than the hold-up.
    await setImmediate();
    await setImmediate();
    holdUp(3 * DEADLINE_MS);
    answers[name] = (await answer).allowed;
  }
  expect(answers).toEqual({ acquire: true, pace: true, enter: true, block: true });
  expect(limiter.stats()[0]).toMatchObject({ leaseFailures: 0 });
});
