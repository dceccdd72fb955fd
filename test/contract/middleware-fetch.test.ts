import { createAdaptorServer } from '@hono/node-server';
import { expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import { type FetchOptions, rateLimit } from '../../src/middleware/fetch.js';
import { listening, middlewareContract } from './middleware.js';

middlewareContract({
  name: 'Fetch handlers',
  hasAddresses: false,
  header: (request: Request, name) => request.headers.get(name) ?? undefined,
  async serve(limiter, options, app) {
    const handler = options.reduceRight<(request: Request) => Promise<Response>>(
      (inner, one) => rateLimit(limiter, one as FetchOptions, inner),
      async () => new Response(await app.handle()),
    );
    const server = createAdaptorServer({
      fetch: (request) =>
        app.inContext(async () => {
          try {
            return await handler(request);
          } catch (error) {
            app.failed(error);
            return new Response(null, { status: 500 });
          }
        }),
    });
    return listening((server as import('node:http').Server).listen(0, '127.0.0.1'));
  },
});

it('hands a handler what its host hands it, and adds fields to a response whose headers are fixed', async () => {
  const limiter = await createLimiter({ policies: [{ name: 'api', local: { rate: 1, burst: 9 } }], telemetry: false });
  const handler = rateLimit(limiter, { policy: 'api', key: () => 'me' }, (_request, context: { to: string }) =>
    Response.redirect(context.to, 302),
  );
  const response = await handler(new Request('https://example.org/'), { to: 'https://example.org/login' });
  expect(response.status).toBe(302);
  expect(response.headers.get('location')).toBe('https://example.org/login');
  expect(response.headers.get('ratelimit')).toBe('"api";r=8;t=8');
  await limiter.close();
});
