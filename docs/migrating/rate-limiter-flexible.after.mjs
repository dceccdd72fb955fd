import { createLimiter, penalise } from 'headgate';

const limiter = await createLimiter({
  policies: [{ name: 'search', ceiling: { rate: 5, per: '1m', burst: 5 } }],
  redis: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  newStore: 'full', // this Redis has never held the policy: it has lost nothing
});
const searches = limiter.policy('search');

async function search(user, cost) {
  const decision = await searches.acquire(user, { cost });
  if (decision.allowed) {
    console.log(`${user} found something`);
  } else {
    const seconds = Math.ceil(decision.retryAfterMs / 1000);
    console.log(`${user} has to wait, ${seconds <= 60 ? 'less than a minute' : 'long'}`);
  }
}

for (let i = 0; i < 6; i += 1) await search('ada', 1);

await search('bob', 4);
await search('bob', 4);

penalise(searches, 'cem', 4); // has been scraping
await search('cem', 1);
await search('cem', 1);

await limiter.close();
