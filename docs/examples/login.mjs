// A login that makes guessing slow: five attempts go through at once. Who makes more is blocked, on all instances: for a
// minute, the next time for five, and then for an hour each time.
//
//   REDIS_URL=redis://127.0.0.1:6379 node docs/examples/login.mjs
//   curl -i -H 'content-type: application/json' -d '{"name":"ada","password":"guess"}' http://127.0.0.1:3000/login
import { randomUUID, scryptSync, timingSafeEqual } from 'node:crypto';
import express from 'express';
import { acquireAll, createLimiter, refund } from 'headgate';
import { retryAfterSeconds } from 'headgate/http';
import { addressKey } from 'headgate/key';

const SALT = 'of this example';
const hashOf = (password) => scryptSync(password, SALT, 32);
const ACCOUNTS = new Map([
  ['ada', hashOf('lovelace')],
  ['grace', hashOf('hopper')],
]);
const NOBODY = hashOf(randomUUID());
const isShort = (text) => typeof text === 'string' && text.length >= 1 && text.length <= 100;

const limiter = await createLimiter({
  policies: [
    { name: 'login-account', ceiling: { rate: 5, per: '1m', burst: 5 } },
    // Whoever tries one password on many accounts.
    { name: 'login-address', ceiling: { rate: 30, per: '1m', burst: 30 } },
  ],
  redis: process.env.REDIS_URL,
  newStore: 'full', // this Redis is new, and has not lost what it knew
});

const BLOCKS = [60_000, 300_000, 3_600_000];
const A_DAY = 86_400_000;

/** Blocks whoever has used up its attempts, and answers for how long. */
async function block({ policy, key }) {
  try {
    const { forMs } = await limiter.policy(policy).block(key, BLOCKS, { forgetAfterMs: A_DAY });
    return forMs;
  } catch {
    return BLOCKS[0]; // Redis is away: blocked on this instance, for as long as the first step
  }
}

const app = express();
app.set('trust proxy', 'loopback'); // the proxies in front of this service, and nobody else
app.use(express.json());

app.post('/login', async (request, response) => {
  const { name, password } = request.body;
  if (!isShort(name) || !isShort(password)) {
    response.status(400).json({ error: 'Send a name and a password.' });
    return;
  }
  const limits = [
    { policy: 'login-account', key: name },
    { policy: 'login-address', key: addressKey(request.ip) ?? 'unknown' },
  ];

  // Charged before the password is looked at: else all guesses that come at once would be looked at.
  const decision = await acquireAll(limiter, limits);
  if (!decision.allowed) {
    const { reason, retryAfterMs = 60_000 } = decision.denied;
    const waitMs = reason === 'empty' ? await block(limits[decision.deniedBy]) : retryAfterMs;
    response.set('Retry-After', String(retryAfterSeconds(waitMs)));
    response.status(429).json({ error: 'Too many attempts.' });
    return;
  }

  // An account that is not there takes as long as one that is.
  if (!timingSafeEqual(hashOf(password), ACCOUNTS.get(name) ?? NOBODY)) {
    response.status(401).json({ error: 'Wrong name or password.' });
    return;
  }

  // Whoever knows the password has not been guessing.
  for (const { policy, key } of limits) refund(limiter.policy(policy), key);
  response.json({ welcome: name });
});

const server = app.listen(process.env.PORT ?? 3000, () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});

process.once('SIGTERM', () => {
  server.close(() => limiter.close());
});
