import fastify from 'fastify';
import { createLimiter } from 'headgate';
import { rateLimit } from 'headgate/fastify';

const limiter = await createLimiter({
  policies: [
    { name: 'api', ceiling: { rate: 5, per: '1m', burst: 5 } },
    { name: 'search', ceiling: { rate: 2, per: '1m', burst: 2 } },
  ],
  redis: process.env.REDIS_URL,
  newStore: 'full', // a Redis that has never seen these policies lets the first requests pass, as a new window would
});

const app = fastify();

await app.register(rateLimit, {
  limiter,
  policy: 'api',
  headers: 'draft-6',
  skip: (request) => request.url === '/health',
});

app.get('/', async () => 'hello');
app.get('/health', async () => 'ok');
app.get('/search', { config: { headgate: { policy: 'search' } } }, async () => 'found');

console.log(await app.listen({ port: Number(process.env.PORT ?? 3000) }));
