// A node:http server behind one limiter, or none, in a process of its own. Arguments as JSON: contender, redis URL, number
// of keys, and whether it has its limiter in every second turn only.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { Redis } from 'ioredis';
import { serve } from '../harness/children.mjs';
import { drawKeys, keyName } from '../harness/keys.mjs';

const { contender, url, keys: keyCount, turns } = JSON.parse(process.argv[2]);
const require = createRequire(import.meta.url);
/** Far above what is asked: what is measured is a limiter that lets requests through. */
const AMPLE = 1_000_000;

let requests = 0;
/** Calls to Redis so far, where a limiter counts them. */
let storeCalls = () => 0;
const answer = (response) => {
  requests += 1;
  response.writeHead(200, { 'content-type': 'text/plain' });
  response.end('hello');
};
const refuse = (response) => {
  requests += 1;
  response.writeHead(429);
  response.end();
};

/** Long against a request, short against what else a machine does. */
const TURN_MS = 50;
const server = createServer(turns ? await inTurns() : await handler(contender));
server.listen(0, '127.0.0.1');
let cpu;
let callsBefore = 0;
serve(async ({ ask }) => {
  if (ask === 'port') return { port: server.address().port };
  if (ask === 'turns') return { turns: seen.splice(0) };
  if (ask === 'start') {
    requests = 0;
    callsBefore = storeCalls();
    cpu = process.cpuUsage();
    return {};
  }
  const used = process.cpuUsage(cpu);
  return { requests, cpuMicros: used.user + used.system, storeCalls: storeCalls() - callsBefore };
});

/** What each turn has cost: one process that is bare half of the time is compared with itself. */
const seen = [];
async function inTurns() {
  const ways = [await handler('bare'), await handler(contender)];
  let turn = 0;
  let since = process.cpuUsage();
  setInterval(() => {
    const { user, system } = process.cpuUsage(since);
    seen.push({ limited: turn === 1, requests, cpuMicros: user + system });
    turn = 1 - turn;
    requests = 0;
    since = process.cpuUsage();
  }, TURN_MS);
  return (request, response) => ways[turn](request, response);
}

async function handler(contender) {
  // Drawn here, so that the load generator need not: a Zipf of tenants, each time a string of its own.
  const drawn = drawKeys('zipf', keyCount, 1 << 16);
  let next = 0;
  const keyOf = () => {
    next = (next + 1) % drawn.length;
    return keyName(drawn[next]);
  };
  switch (contender) {
    case 'bare':
      return (_, response) => {
        keyOf();
        answer(response);
      };
    case 'awaited':
      return async (_, response) => {
        await keyOf();
        answer(response);
      };
    case 'headgate':
    case 'headgate-sync': {
      const api = (await ampleLimiter()).policy('api');
      if (contender === 'headgate-sync') {
        return (_, response) => (api.tryAcquire(keyOf()) ? answer(response) : refuse(response));
      }
      return async (_, response) => ((await api.acquire(keyOf())).allowed ? answer(response) : refuse(response));
    }
    case 'headgate-node': {
      const { rateLimit } = await import('headgate/node');
      const mayPass = rateLimit(await ampleLimiter(), { policy: 'api', key: keyOf });
      return async (request, response) => {
        if (await mayPass(request, response)) answer(response);
      };
    }
    case 'rlf-memory':
    case 'rlf-redis': {
      const { RateLimiterMemory, RateLimiterRedis } = await import('rate-limiter-flexible');
      const terms = { points: AMPLE, duration: 1 };
      const limiter =
        contender === 'rlf-redis'
          ? new RateLimiterRedis({ ...terms, storeClient: new Redis(url) })
          : new RateLimiterMemory(terms);
      if (contender === 'rlf-redis') storeCalls = () => requests;
      return (_, response) => {
        limiter.consume(keyOf()).then(
          () => answer(response),
          () => refuse(response),
        );
      };
    }
    case 'express':
    case 'express-headgate': {
      const { default: express } = await import('express');
      const app = express();
      if (contender === 'express-headgate') {
        const { rateLimit } = await import('headgate/express');
        app.use(rateLimit(await ampleLimiter(), { policy: 'api', key: keyOf }));
      }
      app.use((_, response) => {
        if (contender === 'express') keyOf();
        answer(response);
      });
      return app;
    }
    case 'express-rate-limit': {
      const { rateLimit } = await import('express-rate-limit');
      const limit = rateLimit({ windowMs: 1_000, limit: AMPLE, keyGenerator: keyOf, validate: false });
      return (request, response) => limit(request, response, () => answer(response));
    }
    case 'fastify-store': {
      const store = new (require('@fastify/rate-limit/store/LocalStore.js'))(false, false, 2 * keyCount);
      return (_, response) => {
        const decide = (error, { current }) => (!error && current <= AMPLE ? answer(response) : refuse(response));
        store.incr(keyOf(), decide, 1_000, AMPLE);
      };
    }
    case 'limiter': {
      const { TokenBucket } = await import('limiter');
      const buckets = new Map();
      return (_, response) => {
        const key = keyOf();
        let bucket = buckets.get(key);
        if (!bucket) {
          bucket = new TokenBucket({ bucketSize: AMPLE, tokensPerInterval: AMPLE, interval: 'second' });
          bucket.content = AMPLE;
          buckets.set(key, bucket);
        }
        return bucket.tryRemoveTokens(1) ? answer(response) : refuse(response);
      };
    }
    default:
      throw new Error(`No such contender: ${contender}`);
  }
}

async function ampleLimiter() {
  const { createLimiter } = await import('headgate');
  const terms = { rate: AMPLE, burst: AMPLE };
  const limiter = await createLimiter({
    policies: [{ name: 'api', local: terms, ceiling: terms }],
    redis: url,
    newStore: 'full',
    telemetry: false,
  });
  storeCalls = () => limiter.stats()[0].leaseCalls;
  return limiter;
}
