import { setTimeout as sleep } from 'node:timers/promises';
import { type Milliseconds, type Observer, type PolicyLimiter, silentObserver } from '../index.js';
import { hostNow, RememberingTime } from './host-clock.js';
import { instanceLimiter, onOrders, tell } from './instance.js';
import { Latency } from './latency.js';
import type { DoneRequest, DueRequest, ReplaySettings } from './protocol.js';

const TICK_MS: Milliseconds = 1;
/** Results are told in groups of at most this many. */
const GROUP = 100;

/** How often a ceiling out of reach is asked, with growing pauses between: 5, 10, 20, 40 ms and so on. */
const MOST_TRIES = 9;
const FIRST_PAUSE_MS: Milliseconds = 5;

/** When an `acquire` was decided, on the limiter's clock. */
interface Moment {
  at: Milliseconds | undefined;
}

/** One instance that handles logged requests when they are due, as a server does: each must pass both ceilings. */
export async function runReplay(settings: ReplaySettings): Promise<void> {
  const time = new RememberingTime(settings.speed);
  const latency = new Latency();
  let asking: Moment = { at: undefined };
  // A wait ends on the reading its decision was made on.
  const observer: Observer = {
    ...silentObserver,
    waiting: () => {
      const moment = asking;
      return () => {
        moment.at = time.last;
      };
    },
  };
  const limiter = await instanceLimiter(settings, time, observer);
  const clients = limiter.policy(settings.clientPolicy);
  const all = limiter.policy(settings.globalPolicy);
  const queue: DueRequest[] = [];
  const done: DoneRequest[] = [];
  let open = 0;
  let stopping = false;
  let askedAgain = 0;

  /**
   * Asks one ceiling; answers when it gave a token, on the host's clock, or why it did not. A ceiling that could not be
   * reached is asked again: that says something of this machine, and nothing of the limits.
   */
  async function ask(policy: PolicyLimiter, key: string): Promise<Milliseconds | string> {
    for (let tries = 1; ; tries++) {
      const moment: Moment = { at: undefined };
      asking = moment;
      time.forget();
      const answer = policy.acquire(key);
      const first = time.first ?? time.last;
      const decision = await answer;
      if (decision.allowed) return (moment.at ?? first) / settings.speed;
      if (decision.reason !== 'degraded' || tries === MOST_TRIES) return decision.reason;
      askedAgain += 1;
      await sleep(FIRST_PAUSE_MS * 2 ** (tries - 1));
    }
  }

  async function handle(client: string): Promise<void> {
    open += 1;
    const begun = process.hrtime.bigint();
    const arrivedAt = hostNow();
    const clientAt = await ask(clients, client);
    // There is no verb yet for two policies at once: where the second denies, the first has charged in vain.
    const globalAt = typeof clientAt === 'string' ? clientAt : await ask(all, settings.globalKey);
    latency.record(Number(process.hrtime.bigint() - begun));
    done.push([
      client,
      arrivedAt,
      typeof clientAt === 'string' ? null : clientAt,
      typeof globalAt === 'string' ? null : globalAt,
      typeof globalAt === 'string' ? globalAt : '',
    ]);
    open -= 1;
    if (done.length >= GROUP) report();
  }

  function report(): void {
    if (done.length > 0) tell({ demo: 'replayed', requests: done.splice(0) });
  }

  const ticks = setInterval(() => {
    const now = hostNow();
    while (queue[0] && queue[0][0] <= now) void handle((queue.shift() as DueRequest)[1]);
    if (stopping && queue.length === 0 && open === 0) void end();
  }, TICK_MS);
  const reports = setInterval(report, 100);

  async function end(): Promise<void> {
    clearInterval(ticks);
    clearInterval(reports);
    report();
    const rows = limiter.stats();
    const sum = (name: 'leaseCalls' | 'leaseFailures'): number => rows.reduce((total, row) => total + row[name], 0);
    await limiter.close();
    tell({
      demo: 'done',
      decisions: latency.counts.reduce((total, n) => total + n, 0),
      leaseCalls: sum('leaseCalls'),
      leaseFailures: sum('leaseFailures'),
      askedAgain,
      latency: latency.counts,
    });
  }

  onOrders((order) => {
    if (order.demo === 'requests') queue.push(...order.requests);
    if (order.demo === 'stop') stopping = true;
  });
  tell({ demo: 'ready' });
}
