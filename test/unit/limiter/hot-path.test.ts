import { expect, it } from 'vitest';
import { limiterOf, remoteLimiterOf } from '../../support/limiter-under-test.js';

it('a decision reads the clock once, allowed or denied, and makes no promise', async () => {
  const { api, time } = await remoteLimiterOf({ local: { rate: 1, burst: 50 }, ceiling: { rate: 1, burst: 50 } });
  api.tryAcquire('k', 40);
  await time.advance(11);
  let reads = 0;
  const now = time.now;
  time.now = () => {
    reads += 1;
    return now();
  };
  const attempts = (count: number): number => {
    reads = 0;
    for (let i = 0; i < count; i++) expect(typeof api.tryAcquire('k')).toBe('boolean');
    return reads;
  };
  expect(attempts(30)).toBe(30);
  for (let i = 0; i < 30; i++) api.tryAcquire('k');
  await time.advance(30);
  expect(attempts(20)).toBe(20);
  reads = 0;
  api.decide('k');
  expect(reads).toBe(1);
});

it('a decision from tokens in hand touches no timer', async () => {
  const { api, time } = await limiterOf({ local: { rate: 1, burst: 1_000 } });
  api.tryAcquire('k');
  const { pending } = time;
  for (let i = 0; i < 500; i++) api.tryAcquire('k');
  expect(time.pending).toBe(pending);
});

it('so does one with an object or a promise for its answer, by name or by handle', async () => {
  const { api, time } = await remoteLimiterOf({ local: { rate: 1, burst: 60 }, ceiling: { rate: 1, burst: 60 } });
  api.tryAcquire('k', 40);
  await time.advance(11);
  const handle = api.key('k');
  handle.decide();
  let reads = 0;
  const now = time.now;
  time.now = () => {
    reads += 1;
    return now();
  };
  const verbs = [
    () => api.decide('k'),
    () => handle.decide(),
    () => handle.tryAcquire(),
    () => api.acquire('k'),
    () => handle.acquire({ cost: 2 }),
    // More than there is now.
    () => api.decide('k', 59),
    () => handle.decide(59),
    () => api.acquire('k', { cost: 59 }),
    () => handle.acquire({ cost: 59, maxWaitMs: 0 }),
  ];
  for (const verb of verbs) {
    reads = 0;
    await verb();
    expect(reads).toBe(1);
  }
});
