import { RateLimiter } from 'limiter';

// Mails leave five a second.
const mails = new RateLimiter({ tokensPerInterval: 5, interval: 'second' });

async function send(number) {
  await mails.removeTokens(1);
  console.log(`mail ${number} sent`);
}

await Promise.all(Array.from({ length: 12 }, (_, i) => send(i + 1)));

// Lookups are refused beyond three a minute.
const lookups = new RateLimiter({ tokensPerInterval: 3, interval: 'minute' });

for (const name of ['ada', 'bob', 'cem', 'dan']) {
  console.log(lookups.tryRemoveTokens(1) ? `${name} looked up` : `${name} refused`);
}
