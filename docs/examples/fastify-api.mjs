// A Fastify API whose tenants bring an API key. Reading costs 1, a search costs 5, out of one budget for each tenant.
//
//   REDIS_URL=redis://127.0.0.1:6379 node docs/examples/fastify-api.mjs
//   curl -i -H 'x-api-key: secret-of-acme' http://127.0.0.1:3000/search?q=river
import fastify from 'fastify';
import { createLimiter } from 'headgate';
import { rateLimit } from 'headgate/fastify';

const TENANTS = new Map([
  ['secret-of-acme', 'acme'],
  ['secret-of-globex', 'globex'],
]);

const limiter = await createLimiter({
  policies: [
    {
      name: 'tenant',
      ceiling: { rate: 600, per: '1m', burst: 60 },
      overrides: { globex: { ceiling: { rate: 6000, per: '1m', burst: 600 } } }, // has bought more
    },
  ],
  redis: process.env.REDIS_URL,
  newStore: 'full', // this Redis is new, and has not lost what it knew
});

const app = fastify();

app.decorateRequest('tenant', null);
app.addHook('onRequest', async (request, reply) => {
  request.tenant = TENANTS.get(request.headers['x-api-key']) ?? null;
  if (request.tenant === null) return reply.code(401).send({ error: 'Send a known x-api-key.' });
});

// After the hook above, in the order of registration: only tenants get here, and the key is never a secret.
await app.register(rateLimit, { limiter, policy: 'tenant', key: (request) => request.tenant });

app.get('/items', async () => [{ id: 1 }, { id: 2 }]);

app.get('/search', { config: { headgate: { cost: 5 } } }, async (request) => ({ found: request.query.q ?? '' }));

app.addHook('onClose', () => limiter.close());
process.once('SIGTERM', () => app.close());

console.log(await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' }));
