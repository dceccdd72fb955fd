import express, { type ErrorRequestHandler, type Express, type Request } from 'express';
import express4 from 'express4';
import { afterEach, describe, expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import { rateLimit, rulingsOf, type SetupWarning } from '../../src/middleware/express.js';
import { eventually } from '../support/eventually.js';
import { listening, type MiddlewareUnderTest, middlewareContract } from './middleware.js';

/** Both majors have the same API as far as this goes. */
const VERSIONS = { 'Express 5': express, 'Express 4': express4 };

for (const [name, make] of Object.entries(VERSIONS)) middlewareContract(adaptorOf(name, make));

function adaptorOf(name: string, make: () => Express): MiddlewareUnderTest {
  return {
    name,
    hasAddresses: true,
    header: (request: Request, header) => request.get(header),
    async serve(limiter, options, app) {
      const server = make();
      server.use((_request, _response, next) => app.inContext(next));
      for (const one of options) server.use(rateLimit(limiter, one));
      server.use(async (_request, response, next) => {
        try {
          response.send(await app.handle());
        } catch (error) {
          next(error);
        }
      });
      server.use(((error, _request, response, _next) => {
        app.failed(error);
        response.status(500).end();
      }) satisfies ErrorRequestHandler);
      return listening(server.listen(0, '127.0.0.1'));
    },
  };
}

describe.each(Object.entries(VERSIONS))('%s', (_name, make) => {
  const toClose: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of toClose.splice(0).reverse()) await close();
  });

  async function appWith(trustProxy: unknown, configure: (app: Express) => void = () => {}) {
    const limiter = await createLimiter({
      policies: [{ name: 'api', local: { rate: 1, burst: 1, per: '1h' } }],
      telemetry: false,
    });
    const warnings: SetupWarning[] = [];
    const app = make();
    if (trustProxy !== undefined) app.set('trust proxy', trustProxy);
    configure(app);
    app.use(rateLimit(limiter, { policy: 'api', onWarning: (warning) => warnings.push(warning) }));
    app.use((request, response) => {
      response.json(rulingsOf(request).map(({ key, decision }) => [key, decision.policy]));
    });
    const served = await listening(app.listen(0, '127.0.0.1'));
    toClose.push(
      () => limiter.close(),
      () => served.close(),
    );
    const get = (forwardedFor: string) => fetch(served.url, { headers: { 'x-forwarded-for': forwardedFor } });
    return { get, warnings };
  }

  it('takes the address that `trust proxy` gives, IPv6 by network, and shows handlers what was decided', async () => {
    const { get, warnings } = await appWith(1);
    expect(await (await get('192.0.2.1')).json()).toEqual([['192.0.2.1', 'api']]);
    expect((await get('::ffff:192.0.2.1')).status).toBe(429);
    expect((await get('192.0.2.9, 192.0.2.1')).status).toBe(429);
    expect(await (await get('2001:db8:1:2::3')).json()).toEqual([['2001:db8:1:2::/64', 'api']]);
    expect((await get('2001:0db8:1:2:ffff::4')).status).toBe(429);
    expect(warnings).toEqual([]);
  });

  it('warns where everybody is trusted, since clients then write their own address', async () => {
    const { get, warnings } = await appWith(true);
    await get('192.0.2.1');
    expect(warnings.map(({ code }) => code)).toEqual(['HEADGATE_ANY_PROXY_TRUSTED']);
  });

  it('limits a route by who asks, and not by what stands in its path or query (C128)', async () => {
    const limiter = await createLimiter({
      policies: [{ name: 'verify', local: { rate: 5, burst: 5, per: '1h' } }],
      telemetry: false,
    });
    const app = make();
    app.get('/verify/:code', rateLimit(limiter, { policy: 'verify' }), (request, response) => {
      response.send(request.params['code']);
    });
    const served = await listening(app.listen(0, '127.0.0.1'));
    toClose.push(
      () => limiter.close(),
      () => served.close(),
    );
    let passed = 0;
    for (let i = 0; i < 100; i++) {
      const response = await fetch(`${served.url}verify/${i}?try=${i}`);
      await response.text();
      if (response.status === 200) passed += 1;
    }
    expect(passed).toBe(5);
    expect(limiter.stats()[0]).toMatchObject({ keys: 1 });
  });

  it('leaves a request alone that a time limit has answered while it waited', async () => {
    const limiter = await createLimiter({
      policies: [{ name: 'api', local: { rate: 10, burst: 1 } }],
      telemetry: false,
    });
    limiter.policy('api').tryAcquire('one');
    const failures: unknown[] = [];
    let handled = 0;
    const app = make();
    app.use((_request, response, next) => {
      next();
      response.status(504).send('too slow');
    });
    app.use(rateLimit(limiter, { policy: 'api', key: () => 'one', maxWaitMs: 5_000 }));
    app.use(() => {
      handled += 1;
    });
    app.use(((error, _request, _response, _next) => {
      failures.push(error);
    }) satisfies ErrorRequestHandler);
    const served = await listening(app.listen(0, '127.0.0.1'));
    toClose.push(
      () => limiter.close(),
      () => served.close(),
    );
    expect((await fetch(served.url)).status).toBe(504);
    await eventually(() => limiter.stats()[0]?.waiting === 0, 'it waits no more');
    expect({ handled, failures }).toEqual({ handled: 0, failures: [] });
  });

  it('trusts nobody by 0 hops or by default', async () => {
    for (const setting of [undefined, false, 0]) {
      const { get, warnings } = await appWith(setting);
      await get('192.0.2.1');
      expect(warnings.map(({ code }) => code)).toEqual(['HEADGATE_FORWARDED_FOR_IGNORED']);
    }
  });
});
