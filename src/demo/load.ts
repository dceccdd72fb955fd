import type { Milliseconds } from '../index.js';
import { AdmissionLog } from './admission-log.js';
import { hostNow, RememberingTime } from './host-clock.js';
import { fenceObserver, instanceLimiter, onOrders, tell } from './instance.js';
import { Latency } from './latency.js';
import type { LoadSettings } from './protocol.js';

/** Requests come in small groups this often, as they do from an event loop. */
const TICK_MS: Milliseconds = 2;
const PROGRESS_MS: Milliseconds = 50;
/** After a pause of the process no more than this much of its demand is made up for: its callers went away. */
const MADE_UP_MS: Milliseconds = 50;

/** One instance that asks `demand` times a second, whatever it is answered, and writes down what was admitted. */
export async function runLoad(settings: LoadSettings): Promise<void> {
  const time = new RememberingTime();
  const log = new AdmissionLog(settings.directory, settings.instance);
  const latency = new Latency();
  const limiter = await instanceLimiter(settings, time, fenceObserver());
  const policy = limiter.policy(settings.policy);
  let offered = 0;
  let due = 0;
  let seenAt: Milliseconds | undefined;
  let timers: NodeJS.Timeout[] = [];

  function decide(): void {
    time.forget();
    const begun = process.hrtime.bigint();
    const allowed = policy.tryAcquire(settings.key);
    latency.record(Number(process.hrtime.bigint() - begun));
    offered += 1;
    if (allowed) log.append(time.first ?? time.last);
  }

  function tick(startAt: Milliseconds): void {
    const now = hostNow();
    if (now < startAt) return;
    due += (Math.min(now - (seenAt ?? startAt), MADE_UP_MS) * settings.demand) / 1_000;
    seenAt = now;
    for (; due >= 1; due -= 1) decide();
  }

  async function end(): Promise<void> {
    for (const timer of timers) clearInterval(timer);
    const counters = limiter.stats().find((row) => row.policy === settings.policy);
    await limiter.close();
    log.close();
    tell({
      demo: 'done',
      decisions: offered,
      leaseCalls: counters?.leaseCalls ?? 0,
      leaseFailures: counters?.leaseFailures ?? 0,
      askedAgain: 0,
      latency: latency.counts,
    });
  }

  onOrders((order) => {
    if (order.demo === 'go') {
      timers = [
        setInterval(() => tick(order.at), TICK_MS),
        setInterval(() => tell({ demo: 'progress', offered }), PROGRESS_MS),
      ];
    }
    if (order.demo === 'stop') void end();
  });
  tell({ demo: 'ready' });
}
