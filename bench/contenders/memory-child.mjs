// One contender and very many keys, in a process of its own with --expose-gc. Arguments: name, number of keys.
import { setTimeout as sleep } from 'node:timers/promises';
import { serve } from '../harness/children.mjs';
import { keyName } from '../harness/keys.mjs';
import { headgate, leasedLimiter } from './headgate.mjs';
import { peers } from './memory.mjs';

const [name, keyText] = process.argv.slice(2);
const keyCount = Number(keyText);
/** Keys made in one turn of the event loop: a server that meets new clients does other things in between. */
const A_TURN = 500;

serve(async ({ ask }) => (ask === 'fill' ? await fill() : await comeAndGo()));

/** Bytes a key with all keys in use, and the longest that one new key, or the process between two turns, took. */
async function fill() {
  const contender =
    name === 'strings' ? strings() : await { ...peers, ...headgate }[name].make(true, { length: keyCount });
  const before = bytesInUse();
  const stalls = await touchAll(contender, 0, keyCount, true);
  const bytes = (bytesInUse() - before) / keyCount;
  if (contender.keepAlive) globalThis.kept = contender.keepAlive;
  return { bytes, ...stalls };
}

/** Just the keys: what remains of a contender's bytes without them is its own. */
function strings() {
  const kept = new Array(keyCount);
  let i = 0;
  return { keepAlive: kept, decide: (key) => (kept[i++] = key) };
}

/** Two sets of keys one after the other: what is left of the first when it has not been asked for a while. */
async function comeAndGo() {
  const { limiter, decide } = await leasedLimiter(keyCount);
  const readings = [];
  const start = bytesInUse();
  for (const from of [0, keyCount, 2 * keyCount]) {
    await touchAll({ decide }, from, from + keyCount, false);
    const keysFull = limiter.stats()[0].keys;
    const bytesFull = bytesInUse() - start;
    const cpu = process.cpuUsage();
    const since = performance.now();
    let patience = 60;
    while (limiter.stats()[0].keys > 0 && patience-- > 0) await sleep(500);
    const used = process.cpuUsage(cpu);
    readings.push({
      keysFull,
      megabytesFull: bytesFull / 2 ** 20,
      keysLeft: limiter.stats()[0].keys,
      megabytesLeft: (bytesInUse() - start) / 2 ** 20,
      secondsToGo: (performance.now() - since) / 1_000,
      cpuSecondsToGo: (used.user + used.system) / 1e6,
    });
  }
  await limiter.close();
  return { readings };
}

async function touchAll(contender, from, to, timed) {
  let worstInsert = 0;
  let worstAt = 0;
  let slowInserts = 0;
  let worstTurn = 0;
  for (let i = from; i < to; i++) {
    const key = flat(i);
    const before = timed ? performance.now() : 0;
    const answer = contender.decide(key);
    if (timed) {
      const took = performance.now() - before;
      if (took > 10) slowInserts += 1;
      if (took > worstInsert) {
        worstInsert = took;
        worstAt = i;
      }
    }
    if (contender.async) await answer;
    if (i % A_TURN !== 0) continue;
    const idle = performance.now();
    await new Promise(setImmediate);
    worstTurn = Math.max(worstTurn, performance.now() - idle);
  }
  return { worstInsert, worstAt, slowInserts, worstTurn };
}

const scratch = Buffer.alloc(32);

/** A flat string of its own, as one read from a header is. */
function flat(i) {
  const length = scratch.write(keyName(i), 'latin1');
  return scratch.latin1Slice(0, length);
}

function bytesInUse() {
  for (let i = 0; i < 3; i++) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
