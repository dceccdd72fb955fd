import { createLimiter, schedule } from 'headgate';

const limiter = await createLimiter({
  policies: [
    { name: 'mails', local: { rate: 5, burst: 5 } },
    { name: 'lookups', local: { rate: 3, per: '1m', burst: 3 } },
  ],
});

// Mails leave five a second.
const mails = limiter.policy('mails');

function send(number) {
  console.log(`mail ${number} sent`);
}

await Promise.all(Array.from({ length: 12 }, (_, i) => schedule(mails, 'all', () => send(i + 1))));

// Lookups are refused beyond three a minute.
const lookups = limiter.policy('lookups').key('all');

for (const name of ['ada', 'bob', 'cem', 'dan']) {
  console.log(lookups.tryAcquire() ? `${name} looked up` : `${name} refused`);
}

await limiter.close();
