import express from 'express';
import { rateLimit } from 'express-rate-limit';

const app = express();

app.use(
  rateLimit({
    windowMs: 60_000,
    limit: 5,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    message: { error: 'Slow down.' },
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
