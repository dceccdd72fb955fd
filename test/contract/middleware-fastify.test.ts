import fastify, { type FastifyRequest } from 'fastify';
import fastify4 from 'fastify4';
import { afterEach, expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import { type FastifyRateLimitOptions, rateLimit, rulingsOf } from '../../src/middleware/fastify.js';
import { middlewareContract } from './middleware.js';

for (const [name, make] of Object.entries({ 'Fastify 5': fastify, 'Fastify 4': fastify4 as typeof fastify })) {
  middlewareContract({
    name,
    hasAddresses: true,
    header: (request: FastifyRequest, name) => request.headers[name] as string | undefined,
    async serve(limiter, options, app) {
      const server = make({ forceCloseConnections: true });
      server.addHook('onRequest', (_request, _reply, done) => app.inContext(done));
      server.setErrorHandler((error, _request, reply) => {
        app.failed(error);
        return reply.code(500).send();
      });
      for (const one of options) await server.register(rateLimit, { limiter, ...one });
      server.get('/', async () => app.handle());
      const url = await server.listen({ port: 0, host: '127.0.0.1' });
      return { url: `${url}/`, close: () => server.close() };
    },
  });
}

const toClose: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close();
});

async function serverWith(options: Partial<FastifyRateLimitOptions>, settings = {}) {
  const limiter = await createLimiter({
    policies: [
      { name: 'api', local: { rate: 1, burst: 2, per: '1h' } },
      { name: 'search', local: { rate: 1, burst: 6, per: '1h' } },
    ],
    telemetry: false,
  });
  const server = fastify(settings);
  toClose.push(
    () => limiter.close(),
    () => server.close(),
  );
  await server.register(rateLimit, { limiter, ...options });
  const ask = async (url: string, headers = {}) => (await server.inject({ url, headers })).statusCode;
  return { server, ask };
}

it("Fastify routes have options of their own in place of the plugin's, or no limit", async () => {
  const { server, ask } = await serverWith({ policy: 'api', key: () => 'me' });
  server.get('/', async () => 'root');
  server.get('/search', { config: { headgate: { policy: 'search', cost: 3 } } }, async () => 'found');
  server.get('/health', { config: { headgate: false } }, async () => 'well');
  expect([await ask('/search'), await ask('/search'), await ask('/search')]).toEqual([200, 200, 429]);
  expect([await ask('/'), await ask('/none'), await ask('/'), await ask('/none')]).toEqual([200, 404, 429, 429]);
  expect([await ask('/health'), await ask('/health')]).toEqual([200, 200]);
});

it('Fastify routes are limited only where they say so, if the plugin names no policy', async () => {
  const { server, ask } = await serverWith({});
  server.get('/', async () => 'root');
  server.get('/search', { config: { headgate: { policy: 'search', cost: 6 } } }, async () => 'found');
  expect([await ask('/'), await ask('/'), await ask('/search'), await ask('/search')]).toEqual([200, 200, 200, 429]);
});

it("Fastify doesn't start with a mistake in a route's config", async () => {
  const { server } = await serverWith({ policy: 'api' });
  expect(() => server.get('/', { config: { headgate: { policy: 'serach' } } }, async () => 'root')).toThrow('serach');
  await expect(serverWith({ policy: 'api', hook: 'onSend' as never })).rejects.toThrow('Expected `hook`');
});

it('Fastify limits in a later hook where the key needs it, by the address that `trustProxy` gives', async () => {
  const { server } = await serverWith(
    { policy: 'api', hook: 'preHandler', key: (request) => `user:${(request.body as { user: string }).user}` },
    { trustProxy: 1 },
  );
  server.post('/', async (request) => rulingsOf(request.raw)[0]?.key);
  const answer = await server.inject({ method: 'POST', url: '/', payload: { user: 'alice' } });
  expect(answer.body).toBe('user:alice');
  const { server: behind } = await serverWith({ policy: 'api' }, { trustProxy: '127.0.0.1' });
  behind.get('/', async (request) => rulingsOf(request.raw)[0]?.key);
  const headers = { 'x-forwarded-for': '198.51.100.7, 2001:db8:1:2::3' };
  expect((await behind.inject({ url: '/', headers })).body).toBe('2001:db8:1:2::/64');
});
