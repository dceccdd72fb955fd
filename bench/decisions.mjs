import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { headgate } from './contenders/headgate.mjs';
import { floors, peers } from './contenders/memory.mjs';
import { Child } from './harness/children.mjs';
import { versionsOf } from './harness/machine.mjs';
import { figure } from './harness/report.mjs';
import { median, shuffle, spread } from './harness/statistics.mjs';

export const summary = 'one decision in memory: time and allocation beside the floor and every peer';

const CHILD = fileURLToPath(new URL('contenders/decide-child.mjs', import.meta.url));
/** A young generation that holds all of one reading, so that no collection comes between. */
const ALLOCATION_ARGUMENTS = ['--expose-gc', '--max-semi-space-size=16', '--min-semi-space-size=16'];

/**
 * `ours`: without the peers. `atOnce`: a process with a million keys takes up to a gigabyte, so that only so many are alive
 * at a time, beside those all others are held against; each is started once and sampled for all repetitions.
 */
const PATTERNS = [
  { name: 'hot', label: '1 hot key, interned', keys: 1, draw: 'hot', fresh: false },
  { name: 'hot-fresh', label: '1 hot key, fresh strings', keys: 1, draw: 'hot', fresh: true, ours: true },
  { name: '10k', label: '10,000 keys, Zipf, fresh strings', keys: 10_000, draw: 'zipf', fresh: true },
  { name: '10k-interned', label: '10,000 keys, Zipf, interned', keys: 10_000, draw: 'zipf', fresh: false, ours: true },
  { name: '1M', label: '1,000,000 keys, Zipf, fresh strings', keys: 1_000_000, draw: 'zipf', fresh: true, atOnce: 4 },
  {
    name: '1M-uniform',
    label: '1,000,000 keys, each alike, fresh strings',
    keys: 1_000_000,
    draw: 'uniform',
    fresh: true,
    ours: true,
    atOnce: 4,
  },
];

/** What others are held against, and so has to be measured beside each of them. */
const BASES = ['floor', 'map', 'hg-both'];
/** Keeps a time, a queue or a timer for each call or key, or depends on no key: that is told by the other stages. */
const NOT_AT_A_MILLION = new Set([
  'p-ratelimit',
  'hg-otel',
  'hg-otel-denied',
  'hg-embedded',
  'clock',
  'await-resolved',
]);
/** Starts a timer for each of its keys, and takes a quarter of a millisecond for a call: one stage is enough to see it. */
const HOT_ONLY = new Set(['bottleneck', 'hg-handle']);
const DENIED_PEERS = ['limiter-bucket', 'fastify-store', 'express-store', 'rlf-memory'];

/** The goals of the issues, as ratios to another row of the same run. */
const GOALS = [
  { of: 'hg-both', to: 'floor', most: 1.3, patterns: ['hot', 'hot-fresh', '10k', '10k-interned', '1M', '1M-uniform'] },
  { of: 'hg-local', to: 'map', most: 1.3, patterns: ['hot', '10k', '1M'] },
  { of: 'hg-denied-local', to: 'hg-both', most: 1, patterns: ['hot', '10k', '1M'] },
  { of: 'hg-denied-ceiling', to: 'hg-both', most: 1, patterns: ['hot', '10k', '1M'] },
  { of: 'hg-decide', to: 'hg-both', most: 1.5, patterns: ['hot', 'hot-fresh', '10k', '10k-interned', '1M'] },
  { of: 'hg-handle', to: 'clock', most: 1.3, patterns: ['hot'] },
];

export async function* run({ quick, only, progress, meanwhile }) {
  const settings = { repetitions: quick ? 1 : 3, rounds: quick ? 3 : 7, sampleMs: quick ? 40 : 50 };
  const wanted = only?.split(',');
  const patterns = PATTERNS.filter(({ name, keys }) => (wanted ? wanted.includes(name) : !quick || keys <= 10_000));
  for (const pattern of patterns) {
    const contenders = contendersOf(pattern);
    const runs = [];
    const say = (text) => progress(`${pattern.label}: ${text}`);
    meanwhile(() => (runs.length > 0 ? partOf(pattern, settings, runs, {}) : undefined));
    for await (const run of runsOf(pattern, contenders, { ...settings, say })) runs.push(run);
    const bytes = pattern.atOnce ? {} : await allocations(pattern, contenders, say);
    yield partOf(pattern, settings, runs, bytes);
  }
}

function partOf(pattern, settings, runs, bytes) {
  const results = summarise(runs, bytes);
  return {
    versions: versionsOf([...new Set(Object.keys(results).flatMap((id) => peers[id]?.package ?? []))]),
    tables: [tableOf(pattern, settings, results)],
    goals: goalsOf(pattern.name, results),
    data: { [pattern.name]: results },
  };
}

function contendersOf({ keys, ours, atOnce }) {
  const all = [
    ...Object.entries(floors).map(([id, { label }]) => ({ id, label })),
    ...Object.entries(headgate).map(([id, { label }]) => ({ id, label })),
    ...(ours ? [] : Object.entries(peers).map(([id, { label }]) => ({ id, label }))),
    ...(ours ? [] : DENIED_PEERS.map((id) => ({ id: `${id}-denied!`, label: `${peers[id].label}, denied` }))),
  ];
  return all.filter(({ id }) => (keys === 1 || !HOT_ONLY.has(id)) && !(atOnce && NOT_AT_A_MILLION.has(id)));
}

/**
 * A run is what was sampled side by side: samples by contender, in one repetition. All contenders take part in it, in new
 * processes; or only some of them, and then in all repetitions with the same processes.
 */
async function* runsOf(pattern, contenders, { repetitions, rounds, sampleMs, say }) {
  const ids = contenders.map(({ id }) => id);
  if (!pattern.atOnce) {
    for (let repetition = 1; repetition <= repetitions; repetition++) {
      const tell = (text) => say(`repetition ${repetition} of ${repetitions}, ${text}`);
      yield* sideBySide(pattern, ids, { repetitions: 1, rounds, sampleMs, say: tell });
    }
    return;
  }
  const others = ids.filter((id) => !BASES.includes(id));
  const groups = Math.ceil(others.length / pattern.atOnce);
  for (let group = 0; group < groups; group++) {
    const some = others.slice(group * pattern.atOnce, (group + 1) * pattern.atOnce);
    const tell = (text) => say(`group ${group + 1} of ${groups}, ${text}`);
    yield* sideBySide(pattern, [...BASES, ...some], { repetitions, rounds, sampleMs, say: tell });
  }
}

/** Processes, each warmed up; then rounds in which each is sampled once, in random order, all others frozen. */
async function* sideBySide(pattern, ids, { repetitions, rounds, sampleMs, say }) {
  const open = [];
  try {
    await atATime(ids, async (id) => {
      say(`starting ${id}`);
      const child = new Child(CHILD, [id, JSON.stringify(pattern)]);
      open.push({ id, child });
      await child.ask({ ask: 'open' });
      child.freeze();
    });
    for (let repetition = 1; repetition <= repetitions; repetition++) {
      const run = Object.fromEntries(ids.map((id) => [id, []]));
      for (let round = 1; round <= rounds; round++) {
        say(`${repetitions > 1 ? `repetition ${repetition} of ${repetitions}, ` : ''}round ${round} of ${rounds}`);
        for (const { id, child } of shuffle([...open])) {
          run[id].push(await child.ask({ ask: 'sample', ms: sampleMs }));
          child.freeze();
        }
      }
      yield run;
    }
  } finally {
    await Promise.all(open.map(({ child }) => child.end()));
  }
}

async function allocations(pattern, contenders, say) {
  const bytes = {};
  await atATime(contenders, async ({ id }) => {
    say(`allocation of ${id}`);
    const child = new Child(CHILD, [id, JSON.stringify(pattern)], ALLOCATION_ARGUMENTS);
    try {
      await child.ask({ ask: 'open' });
      bytes[id] = (await child.ask({ ask: 'allocation' })).bytes;
    } finally {
      await child.end();
    }
  });
  return bytes;
}

/** For what is not timed: as many at once as there are cores, and no more than two. */
async function atATime(items, work) {
  const left = [...items];
  const one = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, one));
}

/** A figure is the median of the runs' medians; a ratio is formed within a run. */
function summarise(runs, bytes) {
  const medians = runs.map((run) =>
    Object.fromEntries(
      Object.entries(run).map(([id, samples]) => [
        id,
        { cpuNs: median(samples.map(({ cpuNs }) => cpuNs)), wallNs: median(samples.map(({ wallNs }) => wallNs)) },
      ]),
    ),
  );
  const ids = [...new Set(runs.flatMap((run) => Object.keys(run)))];
  return Object.fromEntries(
    ids.map((id) => {
      const own = medians.filter((run) => run[id]);
      const beside = runs.filter((run) => run[id]);
      const least = (of) => Math.min(...beside.flatMap((run) => run[of].map(({ cpuNs }) => cpuNs)));
      const bases = [...BASES, 'clock', 'await-resolved'].filter((base) => own.every((run) => run[base]));
      const summary = {
        cpuNs: spread(own.map((run) => run[id].cpuNs)),
        wallNs: spread(own.map((run) => run[id].wallNs)),
        samples: spread(beside.flatMap((run) => run[id].map(({ cpuNs }) => cpuNs))),
        ratio: Object.fromEntries(
          bases.map((base) => [base, spread(own.map((run) => run[id].cpuNs / run[base].cpuNs))]),
        ),
        undisturbed: least(id) / least('floor'),
        bytes: bytes[id],
      };
      return [id, summary];
    }),
  );
}

function tableOf(pattern, { repetitions, rounds, sampleMs }, results) {
  const contenders = contendersOf(pattern).filter(({ id }) => results[id]);
  const rows = contenders.map(({ id, label }) => {
    const { cpuNs, wallNs, samples, ratio, undisturbed, bytes } = results[id];
    return [
      label,
      `${figure(ratio.floor.median)}×`,
      `${figure(ratio.floor.least)}–${figure(ratio.floor.most)}`,
      `${figure(undisturbed)}×`,
      figure(cpuNs.median),
      `${figure(samples.least)}–${figure(samples.most)}`,
      figure(wallNs.median),
      bytes === undefined ? '' : figure(Math.max(0, bytes)),
    ];
  });
  const how = pattern.atOnce
    ? `${repetitions} repetitions in the same processes, ${pattern.atOnce} contenders at a time beside ${BASES.length} they are held against; without allocation, and without those that keep a timer or a queue a key`
    : `${repetitions} repetitions in new processes`;
  return {
    caption: `${pattern.label}: ${how}; ${rounds} samples of ${sampleMs} ms each`,
    head: ['', '× floor', 'over repetitions', 'at best', 'ns CPU', 'all samples', 'ns wall', 'B/op'],
    rows,
    notes: ['"At best": the least of all samples over the least of the floor: what is left when nothing else ran.'],
  };
}

function goalsOf(pattern, results) {
  const goals = GOALS.filter(({ patterns }) => patterns.includes(pattern)).flatMap(({ of, to, most }) => {
    const ratio = results[of]?.ratio[to];
    if (!ratio) return [];
    const measured = `${figure(ratio.median)}× (${figure(ratio.least)}–${figure(ratio.most)})`;
    return [{ goal: `${pattern}: ${of} ≤ ${most} × ${to}`, measured, met: ratio.median <= most }];
  });
  const both = results['hg-both'];
  if (pattern !== 'hot' || both.bytes === undefined) return goals;
  const own = Math.max(0, both.bytes - results.floor.bytes);
  const awaited = results['hg-acquire'].cpuNs.median / (both.cpuNs.median + results['await-resolved'].cpuNs.median);
  return [
    { goal: 'hot: hg-both ≤ 200 ns', measured: `${figure(both.cpuNs.median)} ns`, met: both.cpuNs.median <= 200 },
    { goal: "hot: hg-both allocates nothing beyond the clock's own", measured: `${figure(own)} B/op`, met: own < 1 },
    ...goals,
    {
      goal: 'hot: hg-acquire ≤ 1.2 × (hg-both + await of a resolved promise)',
      measured: `${figure(awaited)}×`,
      met: awaited <= 1.2,
    },
  ];
}
