import { fileURLToPath } from 'node:url';
import { steadyFleet } from './contenders/steady-fleet.mjs';
import { Child } from './harness/children.mjs';
import { versionsOf } from './harness/machine.mjs';
import { startRedis } from './harness/redis.mjs';
import { figure } from './harness/report.mjs';
import { shuffle, spread } from './harness/statistics.mjs';

export const summary = 'a fleet on one ceiling: calls to Redis, decisions a second, latency, Redis CPU, and the bound';

const CHILD = fileURLToPath(new URL('contenders/fleet-child.mjs', import.meta.url));
const PROCESSES = 4;
const OUTSTANDING = 32;

const CONTENDERS = {
  rlf: 'rate-limiter-flexible RateLimiterRedis, a call a decision',
  evalsha: 'EVALSHA of a plain bucket, a call a decision',
  headgate: 'headgate acquire, leasing',
};

/** Without a `rate`: limits nobody reaches. With one: all processes together ask for many times as much. */
const LOADS = [
  { name: 'hot', label: 'one hot key', keys: 1 },
  // Its rare keys are asked for less than once in a lease of two seconds, and each is new once to every process.
  {
    name: 'zipf',
    label: '10,000 keys, Zipf, leases of 10 s, after 20 s',
    keys: 10_000,
    leaseMs: 10_000,
    warmUpMs: 20_000,
  },
  {
    name: 'flood',
    label: 'one hot key of 2,000/s, burst 500, asked for as fast as can be',
    keys: 1,
    rate: 2_000,
    burst: 500,
  },
];

export async function run({ quick, only, progress }) {
  const steady = only && only !== 'steady' ? [] : await steadyState(quick, progress);
  const loads = LOADS.filter(({ name }) => !only || only === name);
  const results = {};
  for (const load of loads)
    results[load.name] = await underLoad(load, { ms: quick ? 700 : 3_000, rounds: quick ? 1 : 5, progress });
  return {
    versions: versionsOf(['rate-limiter-flexible', 'ioredis']),
    tables: [
      ...(steady.length > 0 ? [steadyTable(steady)] : []),
      ...loads.map((load) => loadTable(load, results[load.name])),
    ],
    goals: [...steadyGoals(steady), ...loadGoals(results)],
    data: { steady, results },
  };
}

async function steadyState(quick, progress) {
  const headgate = { ...(await import('headgate')), ...(await import('headgate/testing')) };
  const results = [];
  for (const burstSeconds of [1, 0.1]) {
    for (const perSecond of quick ? [500] : [100, 500, 2_000]) {
      progress(`steady state, ${perSecond} decisions/s an instance, burst ${burstSeconds} s`);
      const figures = await steadyFleet(headgate, { perSecond, burstSeconds, seconds: quick ? 2 : 8 });
      results.push({ perSecond, burstSeconds, ...figures });
    }
  }
  return results;
}

async function underLoad(load, { ms, rounds, progress }) {
  const each = Object.fromEntries(Object.keys(CONTENDERS).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const contender of shuffle(Object.keys(CONTENDERS))) {
      progress(`${load.label}: round ${round + 1} of ${rounds}, ${contender}`);
      each[contender].push(await oneRun(contender, load, ms));
    }
  }
  return each;
}

/** A new redis-server and new processes, so that nothing is left of the one before. */
async function oneRun(contender, load, ms) {
  const redis = await startRedis();
  const children = [];
  try {
    for (let index = 0; index < PROCESSES; index++) {
      const settings = { contender, url: redis.url, outstanding: OUTSTANDING, index, ...load };
      children.push(new Child(CHILD, [JSON.stringify(settings)]));
    }
    // Connections, first leases, compilation.
    await Promise.all(children.map((child) => child.ask({ ms: load.warmUpMs ?? ms / 3 })));
    const before = await redis.cpuMicros();
    const answers = await Promise.all(children.map((child) => child.ask({ ms })));
    const serverMicros = (await redis.cpuMicros()) - before;
    const sum = (of) => answers.reduce((total, answer) => total + of(answer), 0);
    const decisions = sum((answer) => answer.decisions);
    const slowest = (p) => Math.max(...answers.map(({ percentiles }) => percentiles[p])) / 1_000;
    return {
      perSecond: sum((answer) => answer.decisions / answer.seconds),
      allowedPerSecond: sum((answer) => answer.allowed / answer.seconds),
      storeCallsPer1000: (sum((answer) => answer.storeCalls) / decisions) * 1_000,
      clientMicros: sum((answer) => answer.cpuMicros) / decisions,
      serverMicros: serverMicros / decisions,
      serverMicrosPerSecond: serverMicros / (ms / 1_000),
      p50: slowest(50),
      p99: slowest(99),
      p999: slowest(99.9),
      ...(load.rate && { overBound: overBound(answers, load) }),
    };
  } finally {
    await Promise.all(children.map((child) => child.end()));
    await redis.stop();
  }
}

/**
 * By how many admissions the worst window of all lies above burst + rate × its length; at most 0 where the bound was
 * held. A window of whole milliseconds is taken to be as short as its admissions allow, less the one it is cut to.
 */
function overBound(answers, { rate, burst }) {
  const perMs = new Map();
  for (const { admissions } of answers)
    for (const [at, count] of admissions) perMs.set(at, (perMs.get(at) ?? 0) + count);
  const times = [...perMs.keys()].sort((a, b) => a - b);
  let worst = Number.NEGATIVE_INFINITY;
  let admitted = 0;
  let least = Number.POSITIVE_INFINITY;
  for (const at of times) {
    // Largest of admitted(from…at) − rate × (at − from + 1): a running difference to the least seen before.
    least = Math.min(least, admitted - (rate * at) / 1_000);
    admitted += perMs.get(at);
    worst = Math.max(worst, admitted - (rate * (at + 1)) / 1_000 - least - burst);
  }
  return worst;
}

function steadyTable(steady) {
  return {
    caption: '20 instances at 80 % of the ceiling, one key, round trip 2 ms, virtual time',
    head: ['decisions/s an instance', 'burst', 'store calls per 1000 decisions', 'an instance and second', 'allowed'],
    rows: steady.map(({ perSecond, burstSeconds, callsPer1000, callsPerInstanceSecond, allowedShare }) => [
      figure(perSecond),
      `${burstSeconds} s`,
      figure(callsPer1000),
      figure(callsPerInstanceSecond),
      `${(allowedShare * 100).toFixed(1)} %`,
    ]),
  };
}

function loadTable({ label, rate }, each) {
  const of = (name, value) => spread(each[name].map(value));
  return {
    caption: `${PROCESSES} processes, ${OUTSTANDING} askers each, ${label}`,
    head: [
      '',
      '× rlf (over rounds)',
      'decisions/s',
      'p50 µs',
      'p99 µs',
      'p99.9 µs',
      'store calls per 1000',
      'µs CPU Redis',
      'µs CPU client',
      ...(rate ? ['allowed/s', 'over the bound'] : []),
    ],
    rows: Object.keys(each).map((name) => {
      const ratio = spread(each[name].map(({ perSecond }, i) => perSecond / each.rlf[i].perSecond));
      return [
        CONTENDERS[name],
        `${figure(ratio.median)}× (${figure(ratio.least)}–${figure(ratio.most)})`,
        ...['perSecond', 'p50', 'p99', 'p999', 'storeCallsPer1000', 'serverMicros', 'clientMicros'].map((field) =>
          figure(of(name, (run) => run[field]).median),
        ),
        ...(rate
          ? [figure(of(name, (run) => run.allowedPerSecond).median), overText(of(name, (run) => run.overBound).most)]
          : []),
      ];
    }),
  };
}

function overText(most) {
  return most <= 0 ? 'never' : `${figure(most)} at worst`;
}

function steadyGoals(steady) {
  return steady
    .filter(({ perSecond, burstSeconds }) => perSecond >= 500 && burstSeconds === 1)
    .map(({ perSecond, callsPer1000 }) => ({
      goal: `steady state, ${perSecond}/s an instance: ≤ 10 store calls per 1000 decisions`,
      measured: figure(callsPer1000),
      met: callsPer1000 <= 10,
    }));
}

function loadGoals(results) {
  const goals = [];
  const ratio = (name, field) =>
    spread(results[name].headgate.map((run, i) => run[field] / results[name].rlf[i][field])).median;
  for (const [name, least] of [
    ['hot', 100],
    ['zipf', 50],
  ]) {
    if (!results[name]) continue;
    const faster = ratio(name, 'perSecond');
    const p99 = 1 / ratio(name, 'p99');
    const cpu = 1 / ratio(name, 'serverMicros');
    goals.push(
      {
        goal: `${name}: ≥ ${least} × the decisions/s of rlf on Redis`,
        measured: `${figure(faster)}×`,
        met: faster >= least,
      },
      { goal: `${name}: p99 ≤ 1/100`, measured: `1/${figure(p99)}`, met: p99 >= 100 },
      { goal: `${name}: ≥ 200 × less Redis CPU a decision`, measured: `${figure(cpu)}×`, met: cpu >= 200 },
    );
  }
  if (results.flood) {
    const worst = Math.max(...results.flood.headgate.map(({ overBound }) => overBound));
    goals.push({
      goal: 'flood: no window above burst + rate × its length',
      measured: overText(worst),
      met: worst <= 0,
    });
  }
  return goals;
}
