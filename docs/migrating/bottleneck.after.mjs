import { setTimeout as sleep } from 'node:timers/promises';
import { createLimiter, schedule } from 'headgate';

// A download every 50 ms at the earliest, and no more than two at once.
const limiter = await createLimiter({
  policies: [
    {
      name: 'downloads',
      local: { algorithm: 'leaky-bucket', rate: 1, per: 50, queue: 1_000 },
      concurrency: { limit: 2 },
    },
  ],
});
const downloads = limiter.policy('downloads');

let underWay = 0;
let mostAtOnce = 0;

async function download(number) {
  underWay += 1;
  mostAtOnce = Math.max(mostAtOnce, underWay);
  await sleep(120);
  underWay -= 1;
  console.log(`download ${number} is there`);
}

await Promise.all([1, 2, 3, 4, 5, 6].map((number) => schedule(downloads, 'all', () => download(number))));
console.log(`${mostAtOnce} at once`);

await limiter.close();
