// Who decides in memory, each as `make(allow)` → `{ decide(key), async, timerBound }`. `decide` answers something truthy
// where the call is allowed; an async one answers a promise. With `allow` false every call after the first few is denied.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Limits that a benchmark never reaches, and ones that it passes at once. */
const AMPLE = 1e9;
const TIGHT = 2;
const HOUR_MS = 3_600_000;

const now = performance.now.bind(performance);

/** The parts that any precise limiter keyed by a string needs: what it costs beyond them is its own. */
export const floors = {
  floor: {
    label: 'floor: clock read + Map.get',
    make: (_, keys) => {
      const places = numbered(keys);
      return { decide: (key) => now() + places.get(key) };
    },
  },
  'floor-object': {
    label: 'clock read + Map.get + one field of an object',
    make: (_, keys) => {
      const objects = new Map(keys.map((key, i) => [key, { place: i, tokens: i + 0.5 }]));
      return { decide: (key) => now() + objects.get(key).tokens };
    },
  },
  clock: { label: 'clock read alone', make: () => ({ decide: now }) },
  map: {
    label: 'Map.get alone',
    make: (_, keys) => {
      const places = numbered(keys);
      return { decide: (key) => places.get(key) + 1 };
    },
  },
  'await-resolved': {
    label: 'await of a resolved promise of an object',
    make: () => {
      const decision = { allowed: true };
      return { async: true, decide: () => Promise.resolve(decision) };
    },
  },
};

export const peers = {
  'limiter-bucket': {
    label: 'limiter TokenBucket in a Map',
    package: 'limiter',
    make: async (allow) => {
      const { TokenBucket } = await import('limiter');
      const bucketSize = allow ? AMPLE : TIGHT;
      const buckets = new Map();
      const open = (key) => {
        const bucket = new TokenBucket({ bucketSize, tokensPerInterval: allow ? AMPLE : 0.001, interval: HOUR_MS });
        bucket.content = bucketSize;
        buckets.set(key, bucket);
        return bucket;
      };
      return { decide: (key) => (buckets.get(key) ?? open(key)).tryRemoveTokens(1) };
    },
  },
  'limiter-rate': {
    label: 'limiter RateLimiter in a Map',
    package: 'limiter',
    make: async (allow) => {
      const { RateLimiter } = await import('limiter');
      const limiters = new Map();
      const open = (key) => {
        const limiter = new RateLimiter({ tokensPerInterval: allow ? AMPLE : TIGHT, interval: HOUR_MS });
        limiters.set(key, limiter);
        return limiter;
      };
      return { decide: (key) => (limiters.get(key) ?? open(key)).tryRemoveTokens(1) };
    },
  },
  'fastify-store': {
    label: "@fastify/rate-limit's LocalStore",
    package: '@fastify/rate-limit',
    make: (allow) => {
      const LocalStore = require('@fastify/rate-limit/store/LocalStore.js');
      // Its default keeps 5,000 keys and forgets the rest.
      const store = new LocalStore(false, false, 4_194_304);
      const most = allow ? AMPLE : TIGHT;
      let passed = 0;
      const take = (_, { current }) => {
        passed = current <= most ? 1 : 0;
      };
      return {
        decide: (key) => {
          store.incr(key, take, HOUR_MS, most);
          return passed;
        },
      };
    },
  },
  'express-store': {
    label: "express-rate-limit's MemoryStore",
    package: 'express-rate-limit',
    make: async (allow) => {
      const { MemoryStore } = await import('express-rate-limit');
      const store = new MemoryStore();
      store.init({ windowMs: HOUR_MS });
      const most = allow ? AMPLE : TIGHT;
      return { async: true, decide: async (key) => (await store.increment(key)).totalHits <= most };
    },
  },
  'rlf-memory': {
    label: 'rate-limiter-flexible RateLimiterMemory',
    package: 'rate-limiter-flexible',
    make: async (allow) => {
      const { RateLimiterMemory } = await import('rate-limiter-flexible');
      const limiter = new RateLimiterMemory({ points: allow ? AMPLE : TIGHT, duration: 3_600, keyPrefix: '' });
      const decide = async (key) => {
        try {
          await limiter.consume(key, 1);
          return true;
        } catch {
          return false;
        }
      };
      return { async: true, decide };
    },
  },
  'p-ratelimit': {
    label: 'p-ratelimit in a Map (queues, never denies)',
    package: 'p-ratelimit',
    make: () => {
      const { pRateLimit } = require('p-ratelimit');
      // It keeps the time of every call of an interval: with a long one it would only grow.
      const limits = new Map();
      const work = () => Promise.resolve(true);
      const open = (key) => {
        const limit = pRateLimit({ interval: 20, rate: AMPLE });
        limits.set(key, limit);
        return limit;
      };
      return { async: true, decide: (key) => (limits.get(key) ?? open(key))(work) };
    },
  },
  'leaky-bucket': {
    label: 'leaky-bucket in a Map (queues up to its time-out)',
    package: 'leaky-bucket',
    make: async () => {
      const { default: LeakyBucket } = await import('leaky-bucket');
      const buckets = new Map();
      const open = (key) => {
        const bucket = new LeakyBucket({ capacity: AMPLE, interval: 3_600, timeout: 3_600 });
        buckets.set(key, bucket);
        return bucket;
      };
      const decide = async (key) => {
        await (buckets.get(key) ?? open(key)).throttle(1);
        return true;
      };
      return { async: true, decide };
    },
  },
  bottleneck: {
    label: 'Bottleneck.Group, 100 jobs at once (a job scheduler)',
    package: 'bottleneck',
    make: () => {
      const { default: Bottleneck } = require('bottleneck');
      const group = new Bottleneck.Group({ reservoir: AMPLE });
      const work = () => Promise.resolve(true);
      return { async: true, timerBound: true, decide: (key) => group.key(key).schedule(work) };
    },
  },
};

function numbered(keys) {
  return new Map(keys.map((key, i) => [key, i]));
}
