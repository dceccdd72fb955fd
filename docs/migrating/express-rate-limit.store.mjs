import express from 'express';
import { rateLimit } from 'express-rate-limit';
import { createLimiter } from 'headgate';
import { HeadgateStore } from 'headgate/express-rate-limit';

const limiter = await createLimiter({
  policies: [{ name: 'api', ceiling: { rate: 5, per: '1m', burst: 5 } }],
  redis: process.env.REDIS_URL,
  newStore: 'full', // a Redis that has never seen this policy lets the first five pass, as a new window would
});

const app = express();

app.use(
  rateLimit({
    windowMs: 60_000,
    limit: 5,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    message: { error: 'Slow down.' },
    skip: (request) => request.path === '/health',
    store: new HeadgateStore(limiter, 'api'),
  }),
);

app.get('/', (_request, response) => {
  response.send('hello');
});
app.get('/health', (_request, response) => {
  response.send('ok');
});

const server = app.listen(process.env.PORT ?? 3000, () => console.log(`http://localhost:${server.address().port}`));
