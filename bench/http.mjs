import { fileURLToPath } from 'node:url';
import { Child } from './harness/children.mjs';
import { versionsOf } from './harness/machine.mjs';
import { startRedis } from './harness/redis.mjs';
import { figure } from './harness/report.mjs';
import { shuffle, spread } from './harness/statistics.mjs';

export const summary =
  'a server bare, behind headgate, and behind each peer: CPU per request, and the slowest responses';

const SERVER = fileURLToPath(new URL('contenders/http-child.mjs', import.meta.url));
const LOAD = fileURLToPath(new URL('contenders/load-child.mjs', import.meta.url));
const CONNECTIONS = 64;

const CONTENDERS = {
  bare: 'no limiter',
  headgate: 'headgate acquire, local tier and ceiling leased from Redis',
  'headgate-sync': 'headgate tryAcquire, the same (a key is denied while its first lease is fetched)',
  'rlf-memory': 'rate-limiter-flexible in memory',
  'rlf-redis': 'rate-limiter-flexible on Redis, a call a request',
  'express-rate-limit': 'express-rate-limit in memory',
};

/** Tenants that are asked for all the time, and addresses most of which come now and then. */
const LOADS = [
  { name: 'tenants', label: '100 keys, Zipf', keys: 100 },
  { name: 'addresses', label: '10,000 keys, Zipf', keys: 10_000 },
];

/** A framework, asked for less than it can do: how long responses take then does not come from a queue. */
const STEADY = {
  name: 'express',
  label: 'Express, 100 keys, Zipf',
  keys: 100,
  perSecond: 1_000,
  contenders: {
    express: 'no limiter',
    'express-headgate': 'headgate/express, local tier and ceiling leased from Redis',
  },
};

export async function run({ quick, only, progress }) {
  const rounds = quick ? 2 : 5;
  const seconds = quick ? 1 : 2;
  const results = {};
  for (const load of LOADS.filter(({ name }) => !only || name === only)) {
    const say = (text) => progress(`${load.label}: ${text}`);
    const each = await interleaved(Object.keys(CONTENDERS), load.keys, { rounds, seconds, say });
    results[load.name] = { label: load.label, each };
  }
  const reports = Object.entries(results).map(([name, { label, each }]) => report(name, label, each));
  if (!only || only === STEADY.name) {
    const { name, label, keys, perSecond, contenders } = STEADY;
    const say = (text) => progress(`${label}: ${text}`);
    const each = await interleaved(Object.keys(contenders), keys, { rounds, seconds: 2 * seconds, perSecond, say });
    results[name] = { label, each };
    reports.push(steadyReport(each));
  }
  return {
    versions: versionsOf(['rate-limiter-flexible', 'express-rate-limit', 'ioredis', 'autocannon']),
    tables: reports.map(({ table }) => table),
    goals: reports.map(({ goal }) => goal),
    data: results,
  };
}

async function interleaved(names, keys, { rounds, seconds, perSecond, say }) {
  const redis = await startRedis();
  const load = new Child(LOAD, []);
  const servers = {};
  const each = Object.fromEntries(names.map((name) => [name, []]));
  try {
    for (const name of names) {
      say(`warming up ${name}`);
      const server = new Child(SERVER, [JSON.stringify({ contender: name, url: redis.url, keys })]);
      const { port } = await server.ask({ ask: 'port' });
      servers[name] = { server, port };
      await load.ask({ port, connections: CONNECTIONS, seconds, perSecond });
    }
    for (let round = 0; round < rounds; round++) {
      for (const name of shuffle([...names])) {
        say(`round ${round + 1} of ${rounds}, ${name}`);
        const { server, port } = servers[name];
        // Not frozen in between: its connections to Redis would be given up. Idle it costs next to nothing.
        await load.ask({ port, connections: CONNECTIONS, seconds: 1, perSecond });
        await server.ask({ ask: 'start' });
        const redisBefore = await redis.cpuMicros();
        const seen = await load.ask({ port, connections: CONNECTIONS, seconds, perSecond });
        const redisMicros = (await redis.cpuMicros()) - redisBefore;
        const { requests, cpuMicros } = await server.ask({ ask: 'stop' });
        each[name].push({ ...seen, cpuMicros: cpuMicros / requests, redisMicros: redisMicros / requests });
      }
    }
  } finally {
    await Promise.all([load, ...Object.values(servers).map(({ server }) => server)].map((child) => child.end()));
    await redis.stop();
  }
  return each;
}

function report(name, label, each) {
  const ratios = Object.fromEntries(
    Object.entries(each).map(([name, runs]) => [
      name,
      {
        cpu: spread(runs.map(({ cpuMicros }, i) => cpuMicros / each.bare[i].cpuMicros)),
        requests: spread(runs.map(({ perSecond }, i) => perSecond / each.bare[i].perSecond)),
      },
    ]),
  );
  const rows = Object.entries(each).map(([contender, runs]) => {
    const { cpu, requests } = ratios[contender];
    const of = (field) => spread(runs.map((run) => run[field]));
    return [
      CONTENDERS[contender],
      `${figure(cpu.median)}×`,
      `${figure(cpu.least)}–${figure(cpu.most)}`,
      figure(of('cpuMicros').median),
      `${figure(requests.median)}×`,
      figure(of('perSecond').median),
      `${figure(of('perSecond').least)}–${figure(of('perSecond').most)}`,
      figure(of('p99').median),
      figure(of('redisMicros').median),
      figure(of('non2xx').median),
    ];
  });
  const { cpu } = ratios.headgate;
  return {
    table: {
      caption: `node:http, ${CONNECTIONS} connections, ${label}, limits that nobody reaches`,
      head: [
        '',
        '× CPU of bare',
        'over rounds',
        'µs CPU',
        '× req/s',
        'req/s',
        'over rounds',
        'p99 ms',
        'µs CPU Redis',
        'denied',
      ],
      rows,
    },
    goal: {
      goal: `${name}: headgate, leasing: CPU a request within 2 % of bare`,
      measured: `${figure(cpu.median)}× (${figure(cpu.least)}–${figure(cpu.most)})`,
      met: cpu.median <= 1.02,
    },
  };
}

function steadyReport(each) {
  const { label, perSecond, contenders } = STEADY;
  const ratios = Object.fromEntries(
    Object.entries(each).map(([name, runs]) => [name, spread(runs.map(({ p99 }, i) => p99 / each.express[i].p99))]),
  );
  const rows = Object.entries(each).map(([contender, runs]) => {
    const of = (field) => spread(runs.map((run) => run[field]));
    const { median, least, most } = ratios[contender];
    return [
      contenders[contender],
      `${figure(median)}×`,
      `${figure(least)}–${figure(most)}`,
      ...['p99', 'p50', 'cpuMicros', 'perSecond', 'non2xx'].map((field) => figure(of(field).median)),
    ];
  });
  const { median, least, most } = ratios['express-headgate'];
  return {
    table: {
      caption: `${label}, ${CONNECTIONS} connections, ${perSecond} requests a second, limits that nobody reaches`,
      head: ['', '× p99 of bare', 'over rounds', 'p99 ms', 'p50 ms', 'µs CPU', 'req/s', 'denied'],
      rows,
    },
    goal: {
      goal: 'express: headgate adds less than 5 % to the p99 of bare Express',
      measured: `${figure(median)}× (${figure(least)}–${figure(most)})`,
      met: median < 1.05,
    },
  };
}
