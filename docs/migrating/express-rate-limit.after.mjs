import express from 'express';
import { createLimiter } from 'headgate';
import { rateLimit } from 'headgate/express';

const limiter = await createLimiter({
  policies: [{ name: 'api', ceiling: { rate: 5, per: '1m', burst: 5 } }],
  redis: process.env.REDIS_URL,
  newStore: 'full', // a Redis that has never seen this policy lets the first five pass, as a new window would
});

const app = express();

app.use(
  rateLimit(limiter, {
    policy: 'api',
    headers: 'draft-8',
    response: (response) => ({
      ...response,
      headers: { ...response.headers, 'Content-Type': 'application/json' },
      body: JSON.stringify({ error: 'Slow down.' }),
    }),
    skip: (request) => request.path === '/health',
  }),
);

app.get('/', (_request, response) => {
  response.send('hello');
});
app.get('/health', (_request, response) => {
  response.send('ok');
});

const server = app.listen(process.env.PORT ?? 3000, () => console.log(`http://localhost:${server.address().port}`));
