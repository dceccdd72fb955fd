import express from 'express';
import { rateLimit } from 'express-rate-limit';
import { describe, expect, it, onTestFinished } from 'vitest';
import { peek } from '../../src/index.js';
import { HeadgateStore } from '../../src/migration/express-rate-limit.js';
import { listening } from '../contract/middleware.js';
import { eventually } from '../support/eventually.js';
import { limiterOf } from '../support/limiter-under-test.js';
import { storeContract } from './rate-limit-stores.js';

storeContract({
  name: 'express-rate-limit',
  async serve(limiter, { limit, passOnStoreError = false }) {
    const app = express();
    app.use(
      rateLimit({
        windowMs: 60_000,
        limit,
        keyGenerator: (request) => String(request.headers['x-caller']),
        passOnStoreError,
        logger: { error: () => {}, warn: () => {} },
        store: new HeadgateStore(limiter, 'api'),
      }),
    );
    app.get('/', (_request, response) => {
      response.send('hello');
    });
    // Express prints errors otherwise.
    app.set('env', 'test');
    return listening(app.listen(0, '127.0.0.1'));
  },
});

describe('the store of express-rate-limit', () => {
  it('takes two policies for one key as two counts, not as one that is counted twice', async () => {
    const { limiter } = await limiterOf(
      {},
      { policies: ['api', 'search'].map((name) => ({ name, local: { rate: 1, burst: 5 } })) },
    );
    const complaints: unknown[] = [];
    const logger = {
      error: (error: unknown) => complaints.push(error),
      warn: (error: unknown) => complaints.push(error),
    };
    const app = express();
    for (const policy of ['api', 'search']) {
      app.use(rateLimit({ limit: 5, keyGenerator: () => 'a', logger, store: new HeadgateStore(limiter, policy) }));
    }
    app.use((_request, response) => {
      response.send('hello');
    });
    const served = await listening(app.listen(0, '127.0.0.1'));
    try {
      expect((await fetch(served.url)).status).toBe(200);
    } finally {
      await served.close();
    }
    expect(complaints).toEqual([]);
    expect(limiter.stats().map(({ allowed }) => allowed)).toEqual([1, 1]);
  });

  it('gives back what a request has taken whose outcome is not to be counted', async () => {
    const { limiter, api } = await limiterOf({ local: { rate: 1, per: '1h', burst: 3 } });
    const app = express();
    const options = { limit: 3, skipSuccessfulRequests: true, keyGenerator: () => 'a' };
    app.use(rateLimit({ ...options, store: new HeadgateStore(limiter, 'api') }));
    app.get('/', (_request, response) => {
      response.send('hello');
    });
    const served = await listening(app.listen(0, '127.0.0.1'));
    onTestFinished(async () => void (await served.close()));
    for (let i = 0; i < 9; i += 1) {
      expect((await fetch(served.url)).status).toBe(200);
      // The middleware gives back once the response has been sent, which its client may know a moment earlier.
      await eventually(() => peek(api, 'a').remaining === 3, 'the token is back');
    }
    const statuses: number[] = [];
    for (let i = 0; i < 4; i += 1) statuses.push((await fetch(`${served.url}missing`)).status);
    expect(statuses).toEqual([404, 404, 404, 429]);
  });

  it('never gives back for a request that was denied, which has taken nothing', async () => {
    const { limiter, api } = await limiterOf({ local: { rate: 1, per: '1h', burst: 3 } });
    const complaints: unknown[] = [];
    const logger = { error: (error: unknown) => complaints.push(error), warn: () => {} };
    const app = express();
    const options = { limit: 3, skipFailedRequests: true, keyGenerator: () => 'a', logger };
    app.use(rateLimit({ ...options, store: new HeadgateStore(limiter, 'api') }));
    app.get('/', (_request, response) => {
      response.send('hello');
    });
    const served = await listening(app.listen(0, '127.0.0.1'));
    onTestFinished(async () => void (await served.close()));
    expect(complaints).toEqual([expect.objectContaining({ code: 'HEADGATE_INVALID_OPTION' })]);

    const statuses: number[] = [];
    for (let i = 0; i < 9; i += 1) statuses.push((await fetch(served.url)).status);
    // Six denials would have filled the bucket twice.
    await eventually(() => complaints.length === 1 + 6, 'the middleware has tried to give back for each denial');
    expect(statuses).toEqual([...Array(3).fill(200), ...Array(6).fill(429)]);
    expect(peek(api, 'a').allowed).toBe(false);
  });

  it('refuses a denial that looks like a success, where successes are given back', async () => {
    const { limiter } = await limiterOf({ local: { rate: 1, burst: 3 } });
    const store = new HeadgateStore(limiter, 'api');
    expect(() => store.init({ limit: 3, skipSuccessfulRequests: true, statusCode: 200 })).toThrow(
      'Expected `skipSuccessfulRequests` to be left out with a store of headgate together with a `statusCode` of 200, got true.',
    );
    await expect(store.decrement('a')).rejects.toMatchObject({ code: 'HEADGATE_INVALID_OPTION' });
  });

  it('tells the count of a key without taking anything', async () => {
    const { limiter } = await limiterOf({ local: { rate: 1, per: '1m', burst: 3 } });
    const limit = rateLimit({ limit: 3, store: new HeadgateStore(limiter, 'api') });
    expect(await limit.getKey('a')).toBeUndefined();
    const store = new HeadgateStore(limiter, 'api');
    for (let i = 0; i < 5; i += 1) await store.increment('a');
    for (let i = 0; i < 2; i += 1) expect((await limit.getKey('a'))?.totalHits).toBe(3);
  });

  it('makes a key as new that is reset', async () => {
    const { limiter } = await limiterOf({ local: { rate: 1, per: '1h', burst: 2 } });
    const store = new HeadgateStore(limiter, 'api');
    const limit = rateLimit({ limit: 2, store });
    for (const key of ['a', 'a', 'a', 'b', 'b']) await store.increment(key);
    limit.resetKey('a');
    await eventually(async () => (await limit.getKey('a')) === undefined, 'nothing is counted any more');
    expect((await store.increment('a')).totalHits).toBe(1);
    expect((await store.increment('b')).totalHits).toBeGreaterThan(2);
  });

  it('denies whatever a `limit` says that is a function', async () => {
    const { limiter } = await limiterOf({ local: { rate: 1, burst: 2 } });
    const store = new HeadgateStore(limiter, 'api');
    store.init({ limit: () => 1_000 });
    const counts = [await store.increment('a'), await store.increment('a'), await store.increment('a')];
    expect(counts.map(({ totalHits }) => totalHits)).toEqual([1, 2, Number.MAX_SAFE_INTEGER]);
  });

  it('is refused a policy that there is not, before any request', async () => {
    const { limiter } = await limiterOf({ local: { rate: 1, burst: 2 } });
    expect(() => new HeadgateStore(limiter, 'apo')).toThrow(
      expect.objectContaining({ code: 'HEADGATE_UNKNOWN_POLICY' }),
    );
  });
});
