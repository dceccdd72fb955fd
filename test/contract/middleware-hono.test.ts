import type { Server } from 'node:http';
import { createAdaptorServer } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import { rateLimit, rulingsOf } from '../../src/middleware/hono.js';
import { listening, middlewareContract } from './middleware.js';

middlewareContract({
  name: 'Hono',
  hasAddresses: true,
  header: (context: Context, name) => context.req.header(name),
  async serve(limiter, options, app) {
    const server = new Hono();
    server.use((_context, next) => app.inContext(next));
    for (const one of options) server.use(rateLimit(limiter, one));
    server.get('*', async (context) => context.text(await app.handle()));
    server.onError((error, context) => {
      app.failed(error);
      return context.body(null, 500);
    });
    return listening((createAdaptorServer(server) as Server).listen(0, '127.0.0.1'));
  },
});

it('Hono on a Fetch runtime takes the connection that its adapter knows, and trusts the proxies it is told of', async () => {
  const limiter = await createLimiter({ policies: [{ name: 'api', local: { rate: 1, burst: 9 } }], telemetry: false });
  const app = new Hono();
  app.use(
    rateLimit(limiter, {
      policy: 'api',
      getConnInfo: () => ({ remote: { address: '10.0.0.1' } }),
      trustedProxies: ['private'],
    }),
  );
  // A response of its own, not one of Hono's making, gets the fields too.
  app.get('/', (context) => new Response(rulingsOf(context.req.raw)[0]?.key));
  const response = await app.request('/', { headers: { 'x-forwarded-for': '198.51.100.7, 192.0.2.1, 10.0.0.2' } });
  expect(await response.text()).toBe('192.0.2.1');
  expect(response.headers.get('ratelimit')).toBe('"api";r=8;t=8');

  const nowhere = new Hono();
  nowhere.use(rateLimit(limiter, { policy: 'api' }));
  nowhere.onError((error, context) => context.text(error.message, 500));
  const failed = await nowhere.request('/');
  expect(failed.status).toBe(500);
  expect(await failed.text()).toContain('Expected the client of this request to have an address');
  await limiter.close();
});
