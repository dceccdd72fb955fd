import express from 'express';
import { rateLimit } from 'express-rate-limit';
import { describe, expect, it } from 'vitest';
import { HeadgateStore } from '../../src/migration/express-rate-limit.js';
import { listening } from '../contract/middleware.js';
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
