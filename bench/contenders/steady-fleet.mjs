// A fleet on virtual time: nothing here depends on how fast the machine is.
import { seeded } from '../harness/statistics.mjs';

/**
 * How many calls to the ceiling store `instances` limiters make for 1000 decisions, each asked `perSecond` times a second
 * (Poisson), together a `load` of the ceiling's rate; one key, all calls 1 ms under way each way.
 *
 * @param headgate `{ createLimiter, ManualTime, MemoryCeiling, storeClock }`
 */
export async function steadyFleet(headgate, { instances = 20, perSecond, load = 0.8, burstSeconds = 1, seconds = 8 }) {
  const { createLimiter, ManualTime, MemoryCeiling, storeClock } = headgate;
  const random = seeded(instances * perSecond);
  const time = new ManualTime();
  const rate = Math.round((instances * perSecond) / load);
  const memory = new MemoryCeiling({ clock: storeClock(time), random });
  const policies = [{ name: 'api', ceiling: { rate, burst: Math.round(rate * burstSeconds) } }];
  const limiters = await Promise.all(
    Array.from({ length: instances }, () =>
      createLimiter({ policies, ceiling: remote(memory, time), time, random, telemetry: false, onTrouble: () => {} }),
    ),
  );
  const apis = limiters.map((limiter) => limiter.policy('api'));

  const settleMs = 2_000;
  const until = settleMs + seconds * 1_000;
  let now = 0;
  let decisions = 0;
  let allowed = 0;
  let callsBefore;
  while (now < until) {
    now += (-Math.log(1 - random()) * 1_000) / (instances * perSecond);
    await time.advance(now - time.now());
    // Batches are sized and fleets have met before anything is counted.
    if (callsBefore === undefined && now >= settleMs) callsBefore = leaseCalls(limiters);
    const passed = apis[Math.floor(random() * instances)].tryAcquire('tenant-1');
    if (callsBefore === undefined) continue;
    decisions += 1;
    if (passed) allowed += 1;
  }
  const calls = leaseCalls(limiters) - callsBefore;
  const closing = Promise.all(limiters.map((limiter) => limiter.close()));
  await time.advance(500);
  await closing;
  return {
    callsPer1000: (calls / decisions) * 1_000,
    callsPerInstanceSecond: calls / instances / seconds,
    allowedShare: allowed / decisions,
  };
}

function leaseCalls(limiters) {
  return limiters.reduce((sum, limiter) => sum + limiter.stats()[0].leaseCalls, 0);
}

/** The same ledger behind a network: answers come later, and none within the call. */
function remote(memory, time) {
  const later = (ms, task) =>
    new Promise((resolve, reject) => {
      time.after(ms, () => {
        try {
          const answer = task();
          time.after(ms, () => resolve(answer));
        } catch (error) {
          reject(error);
        }
      });
    });
  return {
    ready: true,
    lease: (calls) => calls.map((call) => later(1, () => memory.leaseNow(call))),
    heartbeat: (group, holder) => later(1, () => memory.heartbeat(group, holder)),
    close: async () => {},
  };
}
