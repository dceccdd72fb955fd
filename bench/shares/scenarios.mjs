// The scenarios that the allotment is held to, and their targets. R is 1,000 tokens/s unless said.
const policy = (rate, burst) => [{ name: 'api', ceiling: { rate, burst } }];
const even = (instances, rate, more = {}) => ({ name: 'all', instances, traffic: { rate, ...more } });

const atLeast = (name, of, target) => ({ name, of, target, holds: (value) => value >= target, sign: '≥' });
const atMost = (name, of, target) => ({ name, of, target, holds: (value) => value <= target, sign: '≤' });

const utilisation = (target) => atLeast('utilisation', (r) => r.buckets[0].utilisation, target);
const jain = (target) => atLeast('Jain', (r) => r.buckets[0].fairness.jain, target);
const smallest = (target) => atLeast('smallest', (r) => r.buckets[0].fairness.smallest, target);
const calls = (target) => atMost('calls/inst·s', (r) => r.store.callsPerInstanceSecond, target);
const fleetCalls = (target) => atMost('calls/s', (r) => r.store.callsPerSecond, target);
const denied = (group, target) =>
  atMost(`${group} denied`, (r) => partDenied(r.groups.find(({ name }) => name === group)), target);
const falseDenials = (target) => atMost('false denials', (r) => r.buckets[0].falseDenials, target);

/** Utilisation and calls of a part of the run. */
const between = (fromMs, untilMs, of) => (report) => {
  const { everyMs } = report.series;
  const span = (values) => values.slice(fromMs / everyMs, untilMs / everyMs).reduce((sum, value) => sum + value, 0);
  return of(span, (untilMs - fromMs) / 1_000, report);
};
const utilisationBetween = (from, until, rate) =>
  between(
    from,
    until,
    (span, seconds, { series }) => span(series.admitted) / Math.min(rate * seconds, span(series.offered)),
  );
const callsBetween = (from, until, instances) =>
  between(from, until, (span, seconds, { series }) => span(series.storeCalls) / seconds / instances);

function partDenied(group) {
  return group.denied / group.calls;
}

/** ms after `atMs` at which a span of 500 ms begins that is used to `part`. */
function backIn(atMs, rate, part) {
  return (report) => {
    for (let at = atMs; at + 500 <= report.durationMs; at += report.series.everyMs) {
      if (utilisationBetween(at, at + 500, rate)(report) >= part) return at - atMs;
    }
    return Number.POSITIVE_INFINITY;
  };
}

export const scenarios = [
  {
    id: 'even',
    title: '20 even instances, demand 2 R, B = 1 s of R',
    scenario: { duration: '35s', warmUp: '5s', policies: policy(1000, 1000), fleet: [even(20, 100)] },
    targets: [utilisation(0.99), jain(0.995), smallest(0.9), calls(6)],
  },
  {
    id: 'even-small',
    title: 'the same, B = 0.1 s of R',
    scenario: { duration: '35s', warmUp: '5s', policies: policy(1000, 100), fleet: [even(20, 100)] },
    targets: [utilisation(0.98), jain(0.99), smallest(0.85), calls(25)],
  },
  {
    id: 'one-heavy',
    title: '1 heavy (5 R) + 19 light (0.02 R each)',
    scenario: {
      duration: '35s',
      warmUp: '5s',
      policies: policy(1000, 1000),
      fleet: [
        { name: 'heavy', instances: 1, traffic: { rate: 5000 } },
        { name: 'light', instances: 19, traffic: { rate: 20 } },
      ],
    },
    targets: [utilisation(0.99), jain(0.99), denied('light', 0.01), calls(8)],
  },
  {
    id: 'ten-heavy',
    title: '10 heavy (0.5 R) + 10 light (0.01 R), B = 0.1 s of R',
    scenario: {
      duration: '35s',
      warmUp: '5s',
      policies: policy(1000, 100),
      fleet: [
        { name: 'heavy', instances: 10, traffic: { rate: 500 } },
        { name: 'light', instances: 10, traffic: { rate: 10 } },
      ],
    },
    targets: [utilisation(0.98), jain(0.99), denied('light', 0.02), calls(25)],
  },
  {
    id: 'half-light',
    title: '200 instances, half at 0.001 R, half at 0.05 R',
    scenario: {
      duration: '65s',
      warmUp: '5s',
      policies: policy(1000, 1000),
      fleet: [
        { name: 'light', instances: 100, traffic: { rate: 1 } },
        { name: 'heavy', instances: 100, traffic: { rate: 50 } },
      ],
    },
    targets: [utilisation(0.98), jain(0.98), smallest(0.8), calls(6)],
  },
  {
    id: 'exact',
    title: '20 instances, demand exactly R, B = 0.1 s of R',
    scenario: { duration: '65s', warmUp: '5s', policies: policy(1000, 100), fleet: [even(20, 50)] },
    targets: [utilisation(0.95), jain(0.99), smallest(0.9), calls(30)],
  },
  {
    id: 'few-tokens',
    title: '50 instances, R = 10/s, B = 10, demand 2.5 R',
    scenario: { duration: '320s', warmUp: '20s', policies: policy(10, 10), fleet: [even(50, 0.5)], sample: '1s' },
    targets: [utilisation(0.98), jain(0.97), smallest(0.7), fleetCalls(25)],
  },
  {
    id: 'one-token',
    title: '100 instances, R = 1/s, B = 5, demand 3 R',
    scenario: { duration: '1060s', warmUp: '60s', policies: policy(1, 5), fleet: [even(100, 0.03)], sample: '1s' },
    targets: [
      utilisation(0.98),
      jain(0.9),
      atLeast('smallest', (r) => r.buckets[0].fairness.smallest, 1e-9),
      fleetCalls(3),
    ],
  },
  {
    id: 'fits',
    title: '20 instances, demand 0.9 R, B = 1 s of R',
    scenario: { duration: '65s', warmUp: '5s', policies: policy(1000, 1000), fleet: [even(20, 45)] },
    targets: [falseDenials(0.001), calls(4)],
  },
  {
    id: 'thousand',
    title: '1,000 instances, 10 % heavy, R = 10,000/s, demand 2 R',
    scenario: {
      duration: '24s',
      warmUp: '4s',
      policies: policy(10_000, 10_000),
      fleet: [
        { name: 'heavy', instances: 100, traffic: { rate: 110 } },
        { name: 'light', instances: 900, traffic: { rate: 10 } },
      ],
    },
    targets: [utilisation(0.98), jain(0.98), smallest(0.7), calls(6)],
  },
  {
    id: 'ten-thousand',
    title: '10,000 instances, R = 100,000/s, B = 2 s of R, demand 2 R',
    scenario: { duration: '13s', warmUp: '5s', policies: policy(100_000, 200_000), fleet: [even(10_000, 20)] },
    targets: [utilisation(0.98), jain(0.97), fleetCalls(12_000)],
    storeCalls: { instances: 10_000, rate: 100_000, burst: 200_000, target: 1 },
  },
  {
    id: 'step',
    title: 'demand step: all load moves from one half to the other',
    scenario: {
      duration: '30s',
      warmUp: '12s',
      policies: policy(1000, 1000),
      fleet: [
        { name: 'before', instances: 10, traffic: { rate: 200, until: '10s' } },
        { name: 'after', instances: 10, traffic: { rate: 200, from: '10s' } },
      ],
    },
    targets: [atMost('back to 0.97, ms', backIn(10_000, 1000, 0.97), 1_000), utilisation(0.98), jain(0.98)],
  },
  {
    id: 'fresh',
    title: 'fresh store, demand 2 R',
    scenario: {
      duration: '30s',
      warmUp: '5s',
      newStore: 'empty',
      policies: policy(1000, 1000),
      fleet: [even(20, 100)],
    },
    targets: [utilisation(0.97), calls(6)],
  },
  {
    id: 'emptied',
    title: 'store just emptied, demand 2 R',
    scenario: {
      duration: '40s',
      warmUp: '15s',
      newStore: 'empty',
      policies: policy(1000, 1000),
      fleet: [even(20, 100)],
      events: [{ at: '10s', kind: 'store-loss' }],
    },
    targets: [utilisation(0.97), calls(6)],
    // Wallets that have not been registered again add at most min(U, R × lease) within one lease of the loss.
    windowMayExceedBy: 1_000,
  },
  {
    id: 'far',
    title: '60 ms round trip, 20 even instances, 2 R, B = 1 s of R',
    scenario: {
      duration: '35s',
      warmUp: '5s',
      network: { roundTripMs: 60 },
      policies: policy(1000, 1000),
      fleet: [even(20, 100)],
    },
    targets: [utilisation(0.99), jain(0.99), calls(7)],
  },
  {
    id: 'far-small',
    title: '60 ms round trip, the same, B = 0.1 s of R',
    scenario: {
      duration: '35s',
      warmUp: '5s',
      network: { roundTripMs: 60 },
      policies: policy(1000, 100),
      fleet: [even(20, 100)],
    },
    targets: [utilisation(0.83), jain(0.99), calls(15)],
  },
  {
    id: 'surge',
    title: '15 × surge for 5 s (20 instances, 0.9 R before)',
    scenario: {
      duration: '25s',
      warmUp: '5s',
      policies: policy(1000, 1000),
      fleet: [{ name: 'all', instances: 20, traffic: [{ rate: 45 }, { rate: 630, from: '10s', until: '15s' }] }],
    },
    targets: [
      atMost('calls/inst·s in it', callsBetween(10_000, 15_000, 20), 6),
      atLeast('utilisation in it', utilisationBetween(10_000, 15_000, 1000), 0.99),
    ],
    denialCost: 2,
  },
  {
    id: 'many-keys',
    title: 'a million keys, Zipf, 20 instances, ceilings rarely reached',
    scenario: {
      duration: '15s',
      warmUp: '5s',
      policies: policy(1000, 1000),
      fleet: [even(20, 500, { key: { count: 1_000_000, skew: 1 } })],
    },
    targets: [
      atMost('trips a tick', (r) => r.store.mostTripsATick, 1),
      atMost('calls a request', (r) => r.store.calls / r.groups[0].calls, 1),
      atMost('false denials', (r) => r.others.falseDenials, 0.001),
    ],
  },
  {
    id: 'asked-once',
    title: 'every key is asked once',
    scenario: {
      duration: '15s',
      warmUp: '5s',
      policies: policy(10, 10),
      fleet: [even(20, 100, { key: { count: 100_000_000 } })],
    },
    targets: [
      atMost('calls a request', (r) => r.store.calls / r.groups[0].calls, 1.001),
      atMost('stranded', (r) => r.stranded, 0),
      // The call deadline, and the grace after which the store counts a lease as over (100 ms + 1 %).
      atMost('outstanding, ms of demand', (r) => (r.outstanding / (20 * 100)) * 1_000, 205),
    ],
  },
  ...[1_000, 100].map((burst) => ({
    id: `large-cost-${burst}`,
    title: `cost 0.9 B passes under load, B = ${burst / 1_000} s of R`,
    scenario: {
      duration: `${80 * burst}ms`,
      warmUp: '1s',
      policies: policy(1000, burst),
      fleet: [
        { name: 'others', instances: 19, traffic: { rate: 100 } },
        {
          name: 'large',
          instances: 1,
          traffic: { shape: 'cron', size: 1, every: 25 * burst, cost: 0.9 * burst, maxWaitMs: 4 * burst },
        },
      ],
    },
    targets: [
      denied('large', 0),
      atMost('longest wait ÷ (B/R)', (r) => r.groups[1].longestWaitMs / burst, 2),
      // From the others' side: what the large ones leave.
      utilisation(0.9),
    ],
  })),
  {
    id: 'idle',
    title: 'idle keys give back within a second: a cost of B passes then',
    scenario: {
      duration: '12s',
      policies: policy(1000, 1000),
      fleet: [
        { name: 'all', instances: 20, traffic: { rate: 25, until: '10s' } },
        {
          name: 'late',
          instances: 1,
          traffic: { shape: 'cron', size: 1, every: '11s', from: '11s', cost: 1000, maxWaitMs: 5 },
        },
      ],
    },
    targets: [denied('late', 0)],
  },
  {
    id: 'weights',
    title: '10 of weight 1 + 10 of weight 3, demand 2 R',
    scenario: {
      duration: '35s',
      warmUp: '5s',
      policies: policy(1000, 1000),
      fleet: [
        { name: 'one', instances: 10, traffic: { rate: 100 } },
        { name: 'three', instances: 10, weight: 3, traffic: { rate: 100 } },
      ],
    },
    targets: [utilisation(0.99), jain(0.99), smallest(0.9), calls(6)],
  },
];
