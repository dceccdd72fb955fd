// An Express API. Start it as often as you like against one Redis: all instances together keep to the limits.
//
//   PORT=3001 REDIS_URL=redis://127.0.0.1:6379 node docs/examples/express-api.mjs
//   PORT=3002 REDIS_URL=redis://127.0.0.1:6379 node docs/examples/express-api.mjs
import express from 'express';
import { createLimiter } from 'headgate';
import { rateLimit } from 'headgate/express';

const limiter = await createLimiter({
  policies: [
    // Each client may ask 10 times a second, and 20 times at once after a pause.
    { name: 'client', ceiling: { rate: 10, burst: 20 } },
    // All clients together may start 100 exports an hour, no more than 5 of them at once.
    { name: 'exports', ceiling: { rate: 100, per: '1h', burst: 5 } },
  ],
  redis: process.env.REDIS_URL,
  newStore: 'full', // this Redis is new, and has not lost what it knew
});

const app = express();
app.set('trust proxy', 'loopback'); // the proxies in front of this service, and nobody else

app.get('/health', (_request, response) => {
  response.send('ok');
});

// What stands above this line is not limited.
app.use(rateLimit(limiter, { policy: 'client' }));

app.get('/quotes', (_request, response) => {
  response.json({ quote: 'Let many draw from one river, and do not drain it.' });
});

app.post('/exports', rateLimit(limiter, { policy: 'exports', key: () => 'everybody' }), (_request, response) => {
  response.status(202).json({ state: 'started' });
});

const server = app.listen(process.env.PORT ?? 3000, () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});

process.once('SIGTERM', () => {
  // Requests under way are answered first; then what this instance has not spent goes back to the others.
  server.close(() => limiter.close());
});
