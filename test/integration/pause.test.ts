import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createLimiter, type Limiter, peek, schedule } from '../../src/index.js';
import { limitedFetch } from '../../src/outbound/fetch.js';
import { eventually } from '../support/eventually.js';
import { RedisServer } from '../support/redis-server.js';

/** Two instances of a service that hear of marks every 50 ms. */
async function pair(): Promise<[Limiter, Limiter]> {
  const server = await RedisServer.start();
  onTestFinished(() => server.stop());
  const start = async (): Promise<Limiter> => {
    const limiter = await createLimiter({
      policies: [{ name: 'upstream', ceiling: { rate: 1_000, burst: 100 } }],
      redis: server.url,
      newStore: 'full',
      blocksEveryMs: 50,
      telemetry: false,
    });
    onTestFinished(() => limiter.close());
    return limiter;
  };
  return [await start(), await start()];
}

const held = (limiter: Limiter, key: string): boolean => {
  const now = peek(limiter.policy('upstream'), key);
  return !now.allowed && now.reason === 'blocked';
};

it('an upstream that answers 429 to one instance is left alone by the other', async () => {
  const arrivals: number[] = [];
  const upstream = createServer((_request, response) => {
    arrivals.push(performance.now());
    if (arrivals.length === 1) response.writeHead(429, { 'Retry-After': '1' });
    response.end();
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void upstream.close());
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/`;
  const [here, there] = await pair();
  const [fetchHere, fetchThere] = [here, there].map((limiter) => limitedFetch(limiter, { policy: 'upstream' }));

  expect((await fetchHere?.(url))?.status).toBe(429);
  await eventually(() => held(there, new URL(url).origin), 'the other instance has heard of it');
  expect((await fetchThere?.(url))?.status).toBe(200);
  const [told, sent] = arrivals as [number, number];
  expect(sent - told).toBeGreaterThanOrEqual(990);
});

it('a scheduled call that says so holds those of the other instance', async () => {
  const [here, there] = await pair();
  const [api, elsewhere] = [here.policy('upstream'), there.policy('upstream')];
  await schedule(api, 'account', () => 'busy', { pauseFor: () => 800 });
  const told = performance.now();
  await eventually(() => held(there, 'account'), 'the other instance has heard of it');
  await expect(schedule(elsewhere, 'account', () => 0, { maxWaitMs: 100 })).rejects.toMatchObject({
    decision: { reason: 'blocked' },
  });
  await schedule(elsewhere, 'account', () => 'sent');
  expect(performance.now() - told).toBeGreaterThanOrEqual(750);
});
