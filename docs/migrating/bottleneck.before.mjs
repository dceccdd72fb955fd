import { setTimeout as sleep } from 'node:timers/promises';
import Bottleneck from 'bottleneck';

// A download every 50 ms at the earliest, and no more than two at once.
const downloads = new Bottleneck({ minTime: 50, maxConcurrent: 2 });

let underWay = 0;
let mostAtOnce = 0;

async function download(number) {
  underWay += 1;
  mostAtOnce = Math.max(mostAtOnce, underWay);
  await sleep(120);
  underWay -= 1;
  console.log(`download ${number} is there`);
}

await Promise.all([1, 2, 3, 4, 5, 6].map((number) => downloads.schedule(() => download(number))));
console.log(`${mostAtOnce} at once`);

await downloads.disconnect();
