import rateLimit from '@fastify/rate-limit';
import fastify from 'fastify';
import { createLimiter } from 'headgate';
import { headgateStore } from 'headgate/fastify-rate-limit';

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
  max: 5,
  timeWindow: '1 minute',
  enableDraftSpec: true,
  allowList: (request) => request.url === '/health',
  store: headgateStore(limiter, 'api', { '/search': 'search' }),
});

app.get('/', async () => 'hello');
app.get('/health', async () => 'ok');
app.get('/search', { config: { rateLimit: { max: 2 } } }, async () => 'found');

console.log(await app.listen({ port: Number(process.env.PORT ?? 3000) }));
