import { setTimeout as sleep } from 'node:timers/promises';
import { createLimiter } from 'headgate';

// A download every 50 ms at the earliest, and no more than two at once.
const limiter = await createLimiter({
  policies: [{ name: 'downloads', local: { rate: 1, per: 50, burst: 1 }, concurrency: { limit: 2 } }],
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

const patient = { maxWaitMs: Number.POSITIVE_INFINITY };

async function schedule(job) {
  await downloads.acquire('all', patient);
  const seat = await downloads.enter('all', patient);
  try {
    return await job();
  } finally {
    seat.release();
  }
}

await Promise.all([1, 2, 3, 4, 5, 6].map((number) => schedule(() => download(number))));
console.log(`${mostAtOnce} at once`);

await limiter.close();
