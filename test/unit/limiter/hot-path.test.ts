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
