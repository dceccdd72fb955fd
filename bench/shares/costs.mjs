// What is measured on this machine's clock, and so differs from run to run.
import { createLimiter, parsePolicy } from 'headgate';
import { MemoryCeiling } from 'headgate/testing';

const MICRO = 1_000_000;

/** How long one call takes at a store that knows many holders of one bucket, in ms. */
export function storeCallMs({ instances, rate, burst }) {
  let now = 1_700_000_000_000_000;
  const store = new MemoryCeiling({ clock: () => now });
  const { terms } = parsePolicy({ name: 'api', ceiling: { rate, burst } });
  const demand = Math.floor((2 * rate * MICRO) / instances);
  const took = [];
  for (let seq = 1; seq <= 6; seq++) {
    for (let i = 0; i < instances; i++) {
      now += 90;
      const began = performance.now();
      store.leaseNow({
        policy: 'api',
        key: 'all',
        fence: 'api',
        version: 0,
        ...terms.ceiling,
        inheritance: 'as-is',
        holder: `holder-${i}`.padEnd(16, '-'),
        seq,
        disown: 0,
        unspent: 0,
        returned: 0,
        refund: 0,
        refundSince: 0,
        need: MICRO,
        head: MICRO,
        want: 9 * MICRO,
        demand,
        weight: 1,
        lease: 2_000_000,
        sentAt: 0,
        since: 0,
        witness: 0,
        incarnation: 0,
        certainUntil: 0,
      });
      if (seq > 1) took.push(performance.now() - began);
    }
  }
  took.sort((a, b) => a - b);
  return {
    mean: took.reduce((sum, ms) => sum + ms, 0) / took.length,
    p99: took[Math.floor(took.length * 0.99)],
    p9999: took[Math.floor(took.length * 0.9999)],
  };
}

/** What a denial costs, as a multiple of what being allowed costs: the median of rounds that take turns. */
export async function denialCost() {
  const HOUR = 3_600_000_000;
  const denial = { status: 'granted', granted: 0, level: 1, horizon: 1, next: HOUR, retry: HOUR, giveBack: false };
  const terms = {
    version: 0,
    burst: 4e15,
    rateNum: 1e9,
    rateDen: 1,
    conflict: false,
    incarnation: 1,
    certainUntil: HOUR,
  };
  const store = {
    ready: true,
    lease: (calls) => calls.map(async ({ seq }) => ({ ...terms, ...denial, seq, now: 1, era: 'an era' })),
    heartbeat: async () => 1,
    close: async () => {},
  };
  const policies = [{ name: 'api', ceiling: { rate: 1e9, burst: 4e9 } }];
  const full = await createLimiter({ policies, telemetry: false });
  const empty = await createLimiter({ policies, telemetry: false, ceiling: store });
  const allowed = full.policy('api');
  const denied = empty.policy('api');
  await denied.acquire('all');
  const CALLS = 200_000;
  const time = (limiter) => {
    const began = performance.now();
    for (let i = 0; i < CALLS; i++) limiter.tryAcquire('all');
    return performance.now() - began;
  };
  const ratios = [];
  for (let round = 0; round < 25; round++) {
    const [a, b] = [time(allowed), time(denied)];
    if (round >= 5) ratios.push(b / a);
  }
  await full.close();
  await empty.close();
  return ratios.sort((a, b) => a - b)[Math.floor(ratios.length / 2)];
}
