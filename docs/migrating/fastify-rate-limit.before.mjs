import rateLimit from '@fastify/rate-limit';
import fastify from 'fastify';

const app = fastify();

await app.register(rateLimit, {
  max: 5,
  timeWindow: '1 minute',
  enableDraftSpec: true,
  allowList: (request) => request.url === '/health',
});

app.get('/', async () => 'hello');
app.get('/health', async () => 'ok');
app.get('/search', { config: { rateLimit: { max: 2 } } }, async () => 'found');

console.log(await app.listen({ port: Number(process.env.PORT ?? 3000) }));
