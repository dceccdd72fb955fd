// One process of a fleet: asks as fast as it is answered, or so often a second, and remembers when it was told yes.
// Arguments as JSON.
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { serve } from '../harness/children.mjs';
import { drawKeys, keyName } from '../harness/keys.mjs';
import { PLAIN_BUCKET } from '../harness/plain-bucket.mjs';

const {
  contender,
  url,
  keys: keyCount,
  rate,
  burst,
  leaseMs = 2_000,
  outstanding,
  offered,
  index,
} = JSON.parse(process.argv[2]);
/** Decisions an asker makes in a row before it lets the process see to its sockets, where nothing else makes it wait. */
const IN_A_ROW = 64;
/** Where only so many are `offered` a second, an asker comes back after so long for those that are due. */
const PAUSE_MS = 20;
/** Every so-manieth decision is timed. */
const TIMED = 16;

const keys = Array.from({ length: keyCount }, (_, i) => keyName(i));
const drawn = keyCount === 1 ? new Uint32Array(1) : drawKeys('zipf', keyCount, 1 << 18, index + 1);
const { ask, isYes, stats, remote } = await open();
// By now others may have taken all there is.
await ask(keys[0]).catch(throwError);

serve(async ({ ms }) => {
  const histogram = createHistogram();
  // By the millisecond on the clock all processes of a machine share, which is as exact as the bound is looked at.
  const admissions = new Map();
  const callsBefore = stats();
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  let decisions = 0;
  let allowed = 0;
  // One loop for all: nothing is put around a contender's promise that it did not come with.
  const asker = async (first) => {
    let asked = 0;
    for (let i = first; performance.now() - start < ms; ) {
      const due = ((performance.now() - start) / 1_000) * (offered / outstanding);
      const row = offered ? Math.floor(due) - asked : IN_A_ROW;
      asked += row;
      for (let left = row; left > 0; left--) {
        i += outstanding;
        const key = keys[drawn[i % drawn.length]];
        const timed = decisions % TIMED === 0;
        const since = timed ? process.hrtime.bigint() : 0n;
        let yes = false;
        try {
          yes = isYes(await ask(key));
        } catch (refusal) {
          throwError(refusal);
        }
        if (timed) histogram.record(process.hrtime.bigint() - since || 1n);
        decisions += 1;
        if (!yes) continue;
        allowed += 1;
        if (rate === undefined) continue;
        const at = Math.floor(performance.timeOrigin + performance.now());
        admissions.set(at, (admissions.get(at) ?? 0) + 1);
      }
      if (offered) await sleep(PAUSE_MS);
      else if (!remote) await new Promise(setImmediate);
    }
  };
  await Promise.all(Array.from({ length: outstanding }, (_, i) => asker(i)));
  const seconds = (performance.now() - start) / 1_000;
  const used = process.cpuUsage(cpuBefore);
  return {
    decisions,
    allowed,
    seconds,
    cpuMicros: used.user + used.system,
    storeCalls: stats() - callsBefore,
    percentiles: Object.fromEntries([50, 99, 99.9].map((p) => [p, histogram.percentile(p)])),
    admissions: [...admissions],
  };
});

/** rate-limiter-flexible refuses by rejecting with what is no error. */
function throwError(refusal) {
  if (refusal instanceof Error) throw refusal;
}

/**
 * `ask(key)` answers a promise, and `isYes` what it says; `stats()` counts calls to the store; `remote`: every decision
 * waits for it.
 */
async function open() {
  let calls = 0;
  const stats = () => calls;
  // Far above what can be asked, where throughput is measured.
  const perSecond = rate ?? 50_000_000;
  const most = burst ?? perSecond / 4;
  if (contender.startsWith('headgate')) {
    const { createLimiter } = await import('headgate');
    const policies = [{ name: 'api', ceiling: { rate: perSecond, burst: most }, lease: { durationMs: leaseMs } }];
    const limiter = await createLimiter({
      policies,
      redis: url,
      newStore: 'full',
      telemetry: false,
      onTrouble: () => {},
    });
    const api = limiter.policy('api');
    return {
      ask: (key) => api.acquire(key),
      isYes: (decision) => decision.allowed,
      stats: () => limiter.stats()[0].leaseCalls,
      remote: false,
    };
  }
  const client = new Redis(url);
  await client.ping();
  if (contender === 'evalsha') {
    const sha = await client.script('LOAD', PLAIN_BUCKET);
    const ask = (key) => {
      calls += 1;
      return client.evalsha(sha, 1, `plain:${key}`, perSecond, most, 1);
    };
    return { ask, isYes: ([yes]) => yes === 1, stats, remote: true };
  }
  const { RateLimiterRedis } = await import('rate-limiter-flexible');
  const limiter = new RateLimiterRedis({ storeClient: client, points: perSecond, duration: 1, keyPrefix: 'rlf' });
  const ask = (key) => {
    calls += 1;
    return limiter.consume(key, 1);
  };
  return { ask, isYes: () => true, stats, remote: true };
}
