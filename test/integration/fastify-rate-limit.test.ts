import fastifyRateLimit from '@fastify/rate-limit';
import fastify, { type FastifyRequest } from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { headgateStore } from '../../src/migration/fastify-rate-limit.js';
import { limiterOf } from '../support/limiter-under-test.js';
import { storeContract } from './rate-limit-stores.js';

storeContract({
  name: '@fastify/rate-limit',
  async serve(limiter, { limit, passOnStoreError = false }) {
    const app = fastify();
    await app.register(fastifyRateLimit, {
      max: limit,
      timeWindow: '1 minute',
      keyGenerator: (request) => String(request.headers['x-caller']),
      skipOnError: passOnStoreError,
      store: headgateStore(limiter, 'api'),
    });
    app.get('/', async () => 'hello');
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return { url, close: () => app.close() };
  },
});

describe('the store of @fastify/rate-limit', () => {
  async function appOf(options: object, routes?: Record<string, string>) {
    const { limiter } = await limiterOf(
      { name: 'of-3' },
      { policies: [3, 1].map((burst) => ({ name: `of-${burst}`, local: { rate: 1, burst, per: '1h' } })) },
    );
    const app = fastify();
    onTestFinished(() => app.close());
    await app.register(fastifyRateLimit, { max: 3, store: headgateStore(limiter, 'of-3', routes), ...options });
    return app;
  }

  it('holds a route with a limit of its own to the policy named for it', async () => {
    const app = await appOf({}, { '/login': 'of-1' });
    app.get('/', async () => 'hello');
    app.get('/login', { config: { rateLimit: { max: 1 } } }, async () => 'welcome');
    const statuses = async (url: string, times: number) => {
      const seen: number[] = [];
      for (let i = 0; i < times; i += 1) seen.push((await app.inject(url)).statusCode);
      return seen;
    };
    expect(await statuses('/login', 2)).toEqual([200, 429]);
    expect(await statuses('/', 4)).toEqual([200, 200, 200, 429]);
  });

  it('tells the count of a key without taking anything', async () => {
    const app = await appOf({ keyGenerator: () => 'a' });
    const check = app.createRateLimit();
    const remaining = async (request: FastifyRequest, options?: { increment: boolean }) => {
      const seen = await check(request, options);
      return seen.isAllowed ? undefined : seen.remaining;
    };
    app.get('/', { config: { rateLimit: false } }, async (request) => [
      await remaining(request, { increment: false }),
      await remaining(request),
      await remaining(request, { increment: false }),
    ]);
    expect((await app.inject('/')).json()).toEqual([3, 2, 2]);
  });

  it('stops the start where no policy is named for it', async () => {
    const app = await appOf({});
    expect(() => app.get('/login', { config: { rateLimit: { max: 1 } } }, async () => 'welcome')).toThrow(
      /got none for "\/login": headgateStore\(limiter, "of-3", \{ '\/its-url': 'its-policy' \}\)/,
    );
  });

  it('stops the start for options that only their own stores do', async () => {
    for (const option of [{ ban: 2 }, { continueExceeding: true }, { exponentialBackoff: true }]) {
      await expect(appOf(option)).rejects.toMatchObject({ code: 'HEADGATE_INVALID_OPTION' });
    }
  });
});
