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

const LEASING = 'headgate acquire, leasing';
const CONTENDERS = {
  rlf: { label: 'rate-limiter-flexible RateLimiterRedis, a call a decision' },
  evalsha: { label: 'EVALSHA of a plain bucket, a call a decision' },
  headgate: { label: LEASING },
};

/**
 * Without a `rate`: limits nobody reaches. With one: all processes together ask for many times as much, as fast as they
 * are answered, or `offered` times a second.
 */
const LOADS = [
  { name: 'hot', label: 'one hot key', keys: 1, rounds: 5 },
  {
    name: 'zipf',
    label: '10,000 keys, Zipf',
    keys: 10_000,
    rounds: 3,
    // Its rare keys are asked for less than once in a lease of two seconds, and each is new once to every process.
    contenders: {
      ...CONTENDERS,
      headgate: { label: `${LEASING} for 10 s, after 20 s`, leaseMs: 10_000, warmUpMs: 20_000 },
      'headgate-60': { label: `${LEASING} for 60 s, after 45 s`, leaseMs: 60_000, warmUpMs: 45_000 },
    },
  },
  {
    name: 'flood',
    label: 'one hot key of 2,000/s, burst 500, asked for as fast as can be',
    keys: 1,
    rate: 2_000,
    burst: 500,
    rounds: 3,
  },
  {
    name: 'flood-15',
    label: 'one hot key of 2,000/s, burst 500, asked for 30,000 times a second: 15 times as often as allowed',
    keys: 1,
    rate: 2_000,
    burst: 500,
    offered: 30_000,
    rounds: 3,
  },
];

export async function* run({ quick, only, progress, meanwhile }) {
  const wanted = only?.split(',');
  const isWanted = (name) => !wanted || wanted.includes(name);
  if (isWanted('steady')) {
    const steady = [];
    meanwhile(() => steadyPart(steady));
    for await (const figures of steadyState(quick, progress)) steady.push(figures);
    yield steadyPart(steady);
  }
  for (const load of LOADS.filter(({ name }) => isWanted(name))) {
    const contenders = load.contenders ?? CONTENDERS;
    const rounds = quick ? 1 : load.rounds;
    const runs = [];
    meanwhile(() => (runs.length > 0 ? loadPart(load, contenders, runs) : undefined));
    for (let round = 1; round <= rounds; round++) {
      const run = {};
      for (const name of shuffle(Object.keys(contenders))) {
        progress(`${load.label}: round ${round} of ${rounds}, ${name}`);
        run[name] = await oneRun(name, { ...load, ...contenders[name] }, quick);
      }
      runs.push(run);
    }
    yield loadPart(load, contenders, runs);
  }
}

async function* steadyState(quick, progress) {
  const headgate = { ...(await import('headgate')), ...(await import('headgate/testing')) };
  for (const burstSeconds of [1, 0.1]) {
    for (const perSecond of quick ? [500] : [100, 500, 2_000]) {
      progress(`steady state, ${perSecond} decisions/s an instance, burst ${burstSeconds} s`);
      const figures = await steadyFleet(headgate, { perSecond, burstSeconds, seconds: quick ? 2 : 8 });
      yield { perSecond, burstSeconds, ...figures };
    }
  }
}

/** A new redis-server and new processes, so that nothing is left of the one before. */
async function oneRun(contender, load, quick) {
  const ms = quick ? 700 : 3_000;
  const { keys, rate, burst, leaseMs } = load;
  const warmUpMs = quick ? 700 : (load.warmUpMs ?? 1_000);
  const offered = load.offered && load.offered / PROCESSES;
  const redis = await startRedis();
  const children = [];
  try {
    for (let index = 0; index < PROCESSES; index++) {
      const settings = {
        contender,
        url: redis.url,
        outstanding: OUTSTANDING,
        index,
        keys,
        rate,
        burst,
        leaseMs,
        offered,
      };
      children.push(new Child(CHILD, [JSON.stringify(settings)]));
    }
    // Connections, first leases, compilation.
    await Promise.all(children.map((child) => child.ask({ ms: warmUpMs })));
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
      ...(rate && { overBound: overBound(answers, load) }),
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

function steadyPart(steady) {
  return {
    tables: [
      {
        caption: '20 instances at 80 % of the ceiling, one key, round trip 2 ms, virtual time',
        head: [
          'decisions/s an instance',
          'burst',
          'store calls per 1000 decisions',
          'an instance and second',
          'allowed',
        ],
        rows: steady.map(({ perSecond, burstSeconds, callsPer1000, callsPerInstanceSecond, allowedShare }) => [
          figure(perSecond),
          `${burstSeconds} s`,
          figure(callsPer1000),
          figure(callsPerInstanceSecond),
          `${(allowedShare * 100).toFixed(1)} %`,
        ]),
      },
    ],
    goals: steady
      .filter(({ perSecond, burstSeconds }) => perSecond >= 500 && burstSeconds === 1)
      .map(({ perSecond, callsPer1000 }) => ({
        goal: `steady state, ${perSecond}/s an instance: ≤ 10 store calls per 1000 decisions`,
        measured: figure(callsPer1000),
        met: callsPer1000 <= 10,
      })),
    data: { steady },
  };
}

function loadPart(load, contenders, runs) {
  return {
    versions: versionsOf(['rate-limiter-flexible', 'ioredis']),
    tables: [loadTable(load, contenders, runs)],
    goals: loadGoals(load, runs),
    data: { [load.name]: runs },
  };
}

function loadTable({ label, rate }, contenders, runs) {
  return {
    caption: `${PROCESSES} processes, ${OUTSTANDING} askers each, ${label}; ${runs.length} rounds`,
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
    rows: Object.entries(contenders).map(([name, contender]) => {
      const of = (field) => spread(runs.map((run) => run[name][field]));
      const ratio = spread(runs.map((run) => run[name].perSecond / run.rlf.perSecond));
      return [
        contender.label,
        `${figure(ratio.median)}× (${figure(ratio.least)}–${figure(ratio.most)})`,
        ...['perSecond', 'p50', 'p99', 'p999', 'storeCallsPer1000', 'serverMicros', 'clientMicros'].map((field) =>
          figure(of(field).median),
        ),
        ...(rate ? [figure(of('allowedPerSecond').median), overText(of('overBound').most)] : []),
      ];
    }),
  };
}

function overText(most) {
  return most <= 0 ? 'never' : `${figure(most)} at worst`;
}

/** By how much faster than rate-limiter-flexible on Redis, where limits are not reached. */
const TIMES_FASTER = { hot: 100, zipf: 50 };

function loadGoals({ name, rate }, runs) {
  if (rate) {
    const worst = Math.max(...runs.map((run) => run.headgate.overBound));
    return [{ goal: `${name}: no window above burst + rate × its length`, measured: overText(worst), met: worst <= 0 }];
  }
  return Object.keys(runs[0])
    .filter((contender) => contender.startsWith('headgate'))
    .flatMap((contender) => {
      const ratio = (field) => spread(runs.map((run) => run[contender][field] / run.rlf[field])).median;
      const least = TIMES_FASTER[name];
      const faster = ratio('perSecond');
      const p99 = 1 / ratio('p99');
      const cpu = 1 / ratio('serverMicros');
      const of = `${name}, ${contender}`;
      return [
        {
          goal: `${of}: ≥ ${least} × the decisions/s of rlf on Redis`,
          measured: `${figure(faster)}×`,
          met: faster >= least,
        },
        { goal: `${of}: p99 ≤ 1/100`, measured: `1/${figure(p99)}`, met: p99 >= 100 },
        { goal: `${of}: ≥ 200 × less Redis CPU a decision`, measured: `${figure(cpu)}×`, met: cpu >= 200 },
      ];
    });
}
