import { fileURLToPath } from 'node:url';
import { Child } from './harness/children.mjs';
import { versionsOf } from './harness/machine.mjs';
import { startRedis } from './harness/redis.mjs';
import { figure } from './harness/report.mjs';
import { percentile, shuffle, spread } from './harness/statistics.mjs';

export const summary =
  'a server bare, behind headgate, and behind each peer: CPU per request, and the slowest responses';

const SERVER = fileURLToPath(new URL('contenders/http-child.mjs', import.meta.url));
const LOAD = fileURLToPath(new URL('contenders/load-child.mjs', import.meta.url));
const CONNECTIONS = 64;

const CONTENDERS = {
  bare: 'no limiter',
  awaited: 'no limiter, but answered after an await',
  headgate: 'headgate acquire, local tier and ceiling leased from Redis',
  'headgate-sync': 'headgate tryAcquire, the same (a key is denied while its first lease is fetched)',
  'headgate-node': 'headgate/node, the same, with the header fields of the draft',
  'rlf-memory': 'rate-limiter-flexible in memory',
  'rlf-redis': 'rate-limiter-flexible on Redis, a call a request',
  'express-rate-limit': 'express-rate-limit in memory, with its header fields',
  'fastify-store': "@fastify/rate-limit's LocalStore",
  limiter: 'limiter TokenBucket in a Map',
};
/** What tells most, where there are more stages than time. */
const FEW = ['bare', 'headgate', 'rlf-memory', 'rlf-redis'];

/** Tenants that are asked for all the time, one of them alone, and addresses most of which come now and then. */
const LOADS = [
  {
    name: 'tenants',
    label: '100 keys, Zipf',
    keys: 100,
    contenders: Object.keys(CONTENDERS).filter((name) => name !== 'awaited'),
    rounds: 7,
  },
  { name: 'hot', label: 'one hot key', keys: 1, contenders: FEW, rounds: 5 },
  { name: 'addresses', label: '10,000 keys, Zipf', keys: 10_000, contenders: FEW, rounds: 5 },
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

/** One server that has its limiter every other 50 ms: nothing else that a machine does tells the two apart. */
const TURNS = {
  name: 'turns',
  contenders: ['awaited', 'headgate', 'headgate-sync', 'fastify-store', 'limiter', 'rlf-memory', 'rlf-redis'],
};

export async function* run({ quick, only, progress, meanwhile }) {
  const wanted = only?.split(',');
  const isWanted = ({ name }) => !wanted || wanted.includes(name);
  // Whole ones: autocannon looks at its watch once a second.
  const seconds = 1;
  for (const load of LOADS.filter(isWanted)) {
    const rounds = quick ? 2 : load.rounds;
    const say = (text) => progress(`${load.label}: ${text}`);
    const runs = [];
    meanwhile(() => (runs.length > 0 ? loadPart(load, runs) : undefined));
    for await (const run of interleaved(load.contenders, load.keys, { rounds, seconds, say })) runs.push(run);
    yield loadPart(load, runs);
  }
  if (isWanted(TURNS)) {
    const results = {};
    meanwhile(() => (Object.keys(results).length > 0 ? turnsPart(results) : undefined));
    for (const name of TURNS.contenders) {
      progress(`one hot key, in turns: ${name}`);
      results[name] = await inTurns(name, quick ? 3 : 15);
    }
    yield turnsPart(results);
  }
  if (!isWanted(STEADY)) return;
  const { label, keys, perSecond, contenders } = STEADY;
  const say = (text) => progress(`${label}: ${text}`);
  const runs = [];
  meanwhile(() => (runs.length > 0 ? steadyPart(runs) : undefined));
  const settings = { rounds: quick ? 2 : 5, seconds: 3, perSecond, say };
  for await (const run of interleaved(Object.keys(contenders), keys, settings)) runs.push(run);
  yield steadyPart(runs);
}

/** Rounds in which each server is loaded once, in random order: what was seen, by contender. */
async function* interleaved(names, keys, { rounds, seconds, perSecond, say }) {
  const redis = await startRedis();
  const load = new Child(LOAD, []);
  const servers = {};
  try {
    for (const name of names) {
      say(`warming up ${name}`);
      const server = new Child(SERVER, [JSON.stringify({ contender: name, url: redis.url, keys })]);
      const { port } = await server.ask({ ask: 'port' });
      servers[name] = { server, port };
      await load.ask({ port, connections: CONNECTIONS, seconds: 3, perSecond });
    }
    for (let round = 0; round < rounds; round++) {
      const run = {};
      for (const name of shuffle([...names])) {
        say(`round ${round + 1} of ${rounds}, ${name}`);
        const { server, port } = servers[name];
        // Not frozen in between: its connections to Redis would be given up. Idle it costs next to nothing, but leases end,
        // and are made anew in the second before it is measured.
        await load.ask({ port, connections: CONNECTIONS, seconds: 1, perSecond });
        await server.ask({ ask: 'start' });
        const redisBefore = await redis.cpuMicros();
        const seen = await load.ask({ port, connections: CONNECTIONS, seconds, perSecond });
        const redisMicros = (await redis.cpuMicros()) - redisBefore;
        const { requests, cpuMicros, storeCalls } = await server.ask({ ask: 'stop' });
        run[name] = {
          ...seen,
          cpuMicros: cpuMicros / requests,
          redisMicros: redisMicros / requests,
          storeCallsPer1000: (storeCalls / requests) * 1_000,
        };
      }
      yield run;
    }
  } finally {
    await Promise.all([load, ...Object.values(servers).map(({ server }) => server)].map((child) => child.end()));
    await redis.stop();
  }
}

/** What a request costs more in a turn with the limiter than in the bare turns before and after it, in per cent. */
async function inTurns(contender, seconds) {
  const redis = await startRedis();
  const load = new Child(LOAD, []);
  const server = new Child(SERVER, [JSON.stringify({ contender, url: redis.url, keys: 1, turns: true })]);
  try {
    const { port } = await server.ask({ ask: 'port' });
    await load.ask({ port, connections: CONNECTIONS, seconds: 4 });
    await server.ask({ ask: 'turns' });
    await load.ask({ port, connections: CONNECTIONS, seconds });
    const { turns } = await server.ask({ ask: 'turns' });
    const cost = ({ cpuMicros, requests }) => cpuMicros / requests;
    const busy = turns.slice(1, -1).filter(({ requests }) => requests > 0);
    return busy.flatMap((turn, i) => {
      const [before, after] = [busy[i - 1], busy[i + 1]];
      if (!turn.limited || !before || !after || before.limited || after.limited) return [];
      const bare = (cost(before) + cost(after)) / 2;
      return { bare, limited: cost(turn), over: (cost(turn) / bare - 1) * 100 };
    });
  } finally {
    await Promise.all([load.end(), server.end()]);
    await redis.stop();
  }
}

function turnsPart(results) {
  const rows = Object.entries(results).map(([name, turns]) => {
    const over = quartiles(turns.map(({ over }) => over));
    return [
      CONTENDERS[name],
      percent(over.median),
      `${percent(over.low)} to ${percent(over.high)}`,
      figure(quartiles(turns.map(({ bare }) => bare)).median),
      figure(quartiles(turns.map(({ limited }) => limited)).median),
      String(turns.length),
    ];
  });
  const over = quartiles(results.headgate.map((turn) => turn.over));
  return {
    versions,
    tables: [
      {
        caption: `node:http, ${CONNECTIONS} connections, one hot key: one server that has its limiter every other 50 ms, a turn against the bare ones beside it`,
        head: ['', 'CPU over bare', 'half of the turns', 'µs CPU bare', 'µs CPU', 'turns'],
        rows,
      },
    ],
    goals: [
      {
        goal: 'turns: headgate, leasing: CPU a request within 2 % of bare',
        measured: `${percent(over.median)} (${percent(over.low)} to ${percent(over.high)})`,
        met: over.median <= 2,
      },
    ],
    data: { turns: results },
  };
}

function quartiles(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, median, high] = [0.25, 0.5, 0.75].map((p) => percentile(sorted, p));
  return { low, median, high };
}

const versions = versionsOf([
  'rate-limiter-flexible',
  'express-rate-limit',
  '@fastify/rate-limit',
  'limiter',
  'express',
  'ioredis',
  'autocannon',
]);

function loadPart({ name, label, contenders }, runs) {
  const over = (contender, field) => spread(runs.map((run) => (run[contender][field] / run.bare[field] - 1) * 100));
  const rows = contenders.map((contender) => {
    const cpu = over(contender, 'cpuMicros');
    const requests = over(contender, 'perSecond');
    const of = (field) => spread(runs.map((run) => run[contender][field]));
    return [
      CONTENDERS[contender],
      ...(contender === 'bare' ? ['', '', ''] : [percent(cpu.median), spreadText(cpu), percent(requests.median)]),
      figure(of('cpuMicros').median),
      figure(of('cpuMicros').least),
      figure(of('perSecond').median),
      figure(of('p99').median),
      figure(of('storeCallsPer1000').median),
      figure(of('redisMicros').median),
      figure(of('non2xx').median),
    ];
  });
  const cpu = over('headgate', 'cpuMicros');
  return {
    versions,
    tables: [
      {
        caption: `node:http, ${CONNECTIONS} connections, ${label}, limits that nobody reaches; ${runs.length} rounds, CPU of the server process a request`,
        head: [
          '',
          'CPU over bare',
          'over rounds',
          'req/s over bare',
          'µs CPU',
          'at best',
          'req/s',
          'p99 ms',
          'store calls per 1000',
          'µs CPU Redis',
          'denied',
        ],
        rows,
      },
    ],
    goals: [
      {
        goal: `${name}: headgate, leasing: CPU a request within 2 % of bare`,
        measured: `${percent(cpu.median)} (${spreadText(cpu)})`,
        met: cpu.median <= 2,
      },
    ],
    data: { [name]: runs },
  };
}

function percent(value) {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(1)} %`;
}

function spreadText({ least, most }) {
  return `${percent(least)} to ${percent(most)}`;
}

function steadyPart(runs) {
  const { name, label, perSecond, contenders } = STEADY;
  const ratioOf = (contender) => spread(runs.map((run) => run[contender].p99 / run.express.p99));
  const rows = Object.entries(contenders).map(([contender, text]) => {
    const of = (field) => spread(runs.map((run) => run[contender][field]));
    const { median, least, most } = ratioOf(contender);
    return [
      text,
      `${figure(median)}×`,
      `${figure(least)}–${figure(most)}`,
      ...['p99', 'p50', 'cpuMicros', 'perSecond', 'non2xx'].map((field) => figure(of(field).median)),
    ];
  });
  const { median, least, most } = ratioOf('express-headgate');
  return {
    versions,
    tables: [
      {
        caption: `${label}, ${CONNECTIONS} connections, ${perSecond} requests a second, limits that nobody reaches; ${runs.length} rounds`,
        head: ['', '× p99 of bare', 'over rounds', 'p99 ms', 'p50 ms', 'µs CPU', 'req/s', 'denied'],
        rows,
      },
    ],
    goals: [
      {
        goal: 'express: headgate adds less than 5 % to the p99 of bare Express',
        measured: `${figure(median)}× (${figure(least)}–${figure(most)})`,
        met: median < 1.05,
      },
    ],
    data: { [name]: runs },
  };
}
