// One contender in a process of its own. Arguments: the contender's name, and a pattern as JSON.

import { serve } from '../harness/children.mjs';
import { drawKeys, FreshKeys, keyName } from '../harness/keys.mjs';
import { headgate } from './headgate.mjs';
import { floors, peers } from './memory.mjs';

const CHUNK = 4_096;
const AT_ONCE = 100;
/** Keys that are new in one turn of the event loop. */
const A_TURN = 500;
const MOST_CALLS = 50_000_000;
const DRAWN = 1 << 20;

const [name, patternText] = process.argv.slice(2);
const { keys: keyCount, draw, fresh } = JSON.parse(patternText);
const { make, denies = false } = { ...floors, ...peers, ...headgate }[name.replace('-denied!', '')];
const allow = !name.endsWith('-denied!');

const keys = Array.from({ length: keyCount }, (_, i) => keyName(i));
const drawn = keyCount === 1 ? new Uint32Array(1) : drawKeys(draw, keyCount, DRAWN);
const freshKeys = fresh ? new FreshKeys(keyCount) : undefined;
const feed = new Array(CHUNK).fill(keys[0]);
let position = 0;
let contender;
let chunkSize = CHUNK;

serve(async (question) => {
  switch (question.ask) {
    case 'open':
      return await open();
    case 'sample':
      await spin(question.ms / 4);
      return await sample(question.ms);
    case 'allocation':
      return await allocation();
  }
});

async function open() {
  contender = await make(allow, keys);
  await introduce(contender.introduce ?? contender.decide);
  // Every key has been through whatever its first calls cost; where it is to be denied, its burst is spent.
  for (let pass = 0; pass < (allow && !denies ? 1 : 2); pass++) await introduce(contender.decide);
  if (contender.timerBound) chunkSize = AT_ONCE;
  const { allowed, calls } = await spin(400);
  const expected = allow && !denies ? calls : 0;
  if (Math.abs(allowed - expected) > 3)
    throw new Error(`${name} allowed ${allowed} of ${calls} calls, expected ${expected}.`);
  return {};
}

/** Asks once for every key, in turns of the event loop, in which what was asked for by the way arrives. */
async function introduce(decide) {
  for (let from = 0; from < keyCount; from += A_TURN) {
    const turn = keys.slice(from, from + A_TURN);
    if (contender.async) await Promise.all(turn.map((key) => decide(key)));
    else for (const key of turn) decide(key);
    await new Promise(setImmediate);
  }
}

/**
 * Runs for `ms` of CPU, not of the wall: where others have the processor, code would not be compiled by then. Answers
 * how many calls were made and allowed.
 */
async function spin(ms) {
  const since = process.cpuUsage();
  let calls = 0;
  let allowed = 0;
  do {
    nextFeed();
    allowed += contender.async ? await runAsync(contender.decide) : run(contender.decide);
    calls += chunkSize;
    await new Promise(setImmediate);
  } while (cpuMicros(since) < ms * 1_000 && calls < MOST_CALLS);
  return { calls, allowed };
}

/** Nanoseconds a decision: by the wall, and of CPU of the whole process, its collector and compiler included. */
async function sample(ms) {
  let calls = 0;
  let allowed = 0;
  let wall = 0;
  let cpu = 0;
  do {
    nextFeed();
    const cpuBefore = process.cpuUsage();
    const before = performance.now();
    allowed += contender.async ? await runAsync(contender.decide) : run(contender.decide);
    wall += performance.now() - before;
    cpu += cpuMicros(cpuBefore);
    calls += chunkSize;
    await new Promise(setImmediate);
  } while (cpu < ms * 1_000 && wall < 20 * ms);
  return { wallNs: (wall * 1e6) / calls, cpuNs: (cpu * 1e3) / calls, calls, allowed };
}

/** Bytes a decision takes from the heap; the young generation must be large enough that nothing is collected meanwhile. */
async function allocation() {
  const readings = [];
  for (let i = 0; i < 9; i++) {
    nextFeed();
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    const empty = process.memoryUsage().heapUsed - before;
    const start = process.memoryUsage().heapUsed;
    if (contender.async) await runAsync(contender.decide);
    else run(contender.decide);
    readings.push((process.memoryUsage().heapUsed - start - empty) / chunkSize);
  }
  return { bytes: readings.sort((a, b) => a - b)[4] };
}

function cpuMicros(since) {
  const { user, system } = process.cpuUsage(since);
  return user + system;
}

function nextFeed() {
  if (keyCount === 1 && !fresh) return;
  if (freshKeys) freshKeys.fill(feed, drawn, position);
  else for (let i = 0; i < CHUNK; i++) feed[i] = keys[drawn[(position + i) % drawn.length]];
  position = (position + CHUNK) % drawn.length;
}

function run(decide) {
  let allowed = 0;
  for (let i = 0; i < CHUNK; i++) if (decide(feed[i])) allowed += 1;
  return allowed;
}

async function runAsync(decide) {
  let allowed = 0;
  if (contender.timerBound) {
    const answers = await Promise.all(feed.slice(0, AT_ONCE).map(decide));
    return answers.filter(Boolean).length;
  }
  for (let i = 0; i < CHUNK; i++) {
    const answer = await decide(feed[i]);
    if (answer && answer.allowed !== false) allowed += 1;
  }
  return allowed;
}
