import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';

const redis = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');
const searches = new RateLimiterRedis({ storeClient: redis, keyPrefix: 'search', points: 5, duration: 60 });

async function search(user, cost) {
  try {
    await searches.consume(user, cost);
    console.log(`${user} found something`);
  } catch (refusal) {
    if (refusal instanceof Error) throw refusal;
    const seconds = Math.ceil(refusal.msBeforeNext / 1000);
    console.log(`${user} has to wait, ${seconds <= 60 ? 'less than a minute' : 'long'}`);
  }
}

for (let i = 0; i < 6; i += 1) await search('ada', 1);

await search('bob', 4);
await search('bob', 4);

await searches.penalty('cem', 4); // has been scraping
await search('cem', 1);
await search('cem', 1);

await redis.quit();
