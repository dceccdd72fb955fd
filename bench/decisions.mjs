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

const PATTERNS = [
  { name: 'hot', label: '1 hot key, interned', keys: 1, draw: 'hot', fresh: false },
  { name: 'hot-fresh', label: '1 hot key, fresh strings', keys: 1, draw: 'hot', fresh: true, ours: true },
  { name: '10k', label: '10,000 keys, Zipf, fresh strings', keys: 10_000, draw: 'zipf', fresh: true },
  { name: '10k-interned', label: '10,000 keys, Zipf, interned', keys: 10_000, draw: 'zipf', fresh: false, ours: true },
  { name: '1M', label: '1,000,000 keys, Zipf, fresh strings', keys: 1_000_000, draw: 'zipf', fresh: true },
  {
    name: '1M-uniform',
    label: '1,000,000 keys, each alike, fresh strings',
    keys: 1_000_000,
    draw: 'uniform',
    fresh: true,
  },
];

/** Keeps a time, a queue or a timer for each call or key: a million of them would measure something else. */
const NOT_AT_A_MILLION = new Set(['p-ratelimit', 'bottleneck', 'hg-otel', 'hg-otel-denied', 'hg-embedded']);
const DENIED_PEERS = ['limiter-bucket', 'fastify-store', 'express-store', 'rlf-memory'];

/** The goals of the issues, as ratios to another row of the same run. */
const GOALS = [
  { of: 'hg-both', to: 'floor', most: 1.3, patterns: ['hot', 'hot-fresh', '10k', '10k-interned', '1M', '1M-uniform'] },
  { of: 'hg-local', to: 'map', most: 1.3, patterns: ['hot', '10k', '1M'] },
  { of: 'hg-denied-local', to: 'hg-both', most: 1, patterns: ['hot', '10k', '1M'] },
  { of: 'hg-denied-ceiling', to: 'hg-both', most: 1, patterns: ['hot', '10k', '1M'] },
  { of: 'hg-decide', to: 'hg-both', most: 1.5, patterns: ['hot', '10k'] },
  { of: 'hg-handle', to: 'clock', most: 1.3, patterns: ['hot'] },
];

export async function run({ quick, only, progress }) {
  const repetitions = quick ? 1 : 3;
  const rounds = quick ? 3 : 9;
  const sampleMs = quick ? 40 : 50;
  const wanted = only?.split(',');
  const patterns = PATTERNS.filter(({ name, keys }) => (wanted ? wanted.includes(name) : !quick || keys <= 10_000));
  const results = {};
  for (const pattern of patterns) {
    const contenders = contendersOf(pattern);
    const samples = Object.fromEntries(contenders.map(({ id }) => [id, []]));
    for (let repetition = 0; repetition < repetitions; repetition++) {
      const say = (text) => progress(`${pattern.label}: repetition ${repetition + 1} of ${repetitions}, ${text}`);
      await oneRepetition(pattern, contenders, { rounds, sampleMs, say, samples });
    }
    progress(`${pattern.label}: allocation`);
    results[pattern.name] = summarise(samples, pattern.keys <= 10_000 ? await allocations(pattern, contenders) : {});
  }
  return {
    versions: versionsOf([...new Set(Object.values(peers).map((peer) => peer.package))]),
    tables: patterns.map((pattern) => tableOf(pattern, results[pattern.name])),
    goals: goalsOf(results),
    data: results,
  };
}

function contendersOf({ keys, ours }) {
  const all = [
    ...Object.entries(floors).map(([id, { label }]) => ({ id, label })),
    ...Object.entries(headgate).map(([id, { label, hotOnly }]) => ({ id, label, hotOnly })),
    ...(ours ? [] : Object.entries(peers).map(([id, { label }]) => ({ id, label }))),
    ...(ours ? [] : DENIED_PEERS.map((id) => ({ id: `${id}-denied!`, label: `${peers[id].label}, denied` }))),
  ];
  return all.filter(({ id, hotOnly }) => (keys === 1 || !hotOnly) && (keys <= 10_000 || !NOT_AT_A_MILLION.has(id)));
}

/** New processes, each warmed up; then rounds in which each is sampled once, in random order, all others frozen. */
async function oneRepetition(pattern, contenders, { rounds, sampleMs, say, samples }) {
  const open = [];
  try {
    for (const { id } of contenders) {
      say(`starting ${id}`);
      const child = new Child(CHILD, [id, JSON.stringify(pattern)]);
      const { absent } = await child.ask({ ask: 'open' });
      if (absent) {
        await child.end();
        continue;
      }
      child.freeze();
      open.push({ id, child });
      samples[id].push([]);
    }
    for (let round = 0; round < rounds; round++) {
      say(`round ${round + 1} of ${rounds}`);
      for (const { id, child } of shuffle([...open])) {
        samples[id].at(-1).push(await child.ask({ ask: 'sample', ms: sampleMs }));
        child.freeze();
      }
    }
  } finally {
    await Promise.all(open.map(({ child }) => child.end()));
  }
}

async function allocations(pattern, contenders) {
  const bytes = {};
  for (const { id } of contenders) {
    const child = new Child(CHILD, [id, JSON.stringify(pattern)], ALLOCATION_ARGUMENTS);
    const { absent } = await child.ask({ ask: 'open' });
    if (!absent) bytes[id] = (await child.ask({ ask: 'allocation' })).bytes;
    await child.end();
  }
  return bytes;
}

/** A figure is the median of the repetitions' medians; a ratio is formed within a repetition. */
function summarise(samples, bytes) {
  const medians = {};
  for (const [id, repetitions] of Object.entries(samples)) {
    if (repetitions.length === 0) continue;
    medians[id] = repetitions.map((rounds) => ({
      cpuNs: median(rounds.map(({ cpuNs }) => cpuNs)),
      wallNs: median(rounds.map(({ wallNs }) => wallNs)),
    }));
  }
  const least = (id) => Math.min(...samples[id].flat().map(({ cpuNs }) => cpuNs));
  const summaries = {};
  for (const [id, repetitions] of Object.entries(medians)) {
    const each = samples[id].flat().map(({ cpuNs }) => cpuNs);
    summaries[id] = {
      cpuNs: spread(repetitions.map(({ cpuNs }) => cpuNs)),
      wallNs: spread(repetitions.map(({ wallNs }) => wallNs)),
      samples: spread(each),
      ratio: Object.fromEntries(
        ['floor', 'map', 'clock', 'hg-both', 'await-resolved']
          .filter((base) => medians[base])
          .map((base) => [base, spread(repetitions.map(({ cpuNs }, i) => cpuNs / medians[base][i].cpuNs))]),
      ),
      undisturbed: least(id) / least('floor'),
      bytes: bytes[id],
    };
  }
  return summaries;
}

function tableOf(pattern, results) {
  const labels = Object.fromEntries(contendersOf(pattern).map(({ id, label }) => [id, label]));
  const rows = Object.entries(results).map(([id, { cpuNs, wallNs, samples, ratio, undisturbed, bytes }]) => [
    labels[id],
    `${figure(ratio.floor.median)}×`,
    `${figure(ratio.floor.least)}–${figure(ratio.floor.most)}`,
    `${figure(undisturbed)}×`,
    figure(cpuNs.median),
    `${figure(samples.least)}–${figure(samples.most)}`,
    figure(wallNs.median),
    bytes === undefined ? '' : figure(Math.max(0, bytes)),
  ]);
  return {
    caption: pattern.label,
    head: ['', '× floor', 'over repetitions', 'at best', 'ns CPU', 'all samples', 'ns wall', 'B/op'],
    rows,
    notes: ['"At best": the least of all samples over the least of the floor: what is left when nothing else ran.'],
  };
}

function goalsOf(results) {
  const goals = GOALS.flatMap(({ of, to, most, patterns }) =>
    patterns.flatMap((pattern) => {
      const ratio = results[pattern]?.[of]?.ratio[to];
      if (!ratio) return [];
      const measured = `${figure(ratio.median)}× (${figure(ratio.least)}–${figure(ratio.most)})`;
      return [{ goal: `${pattern}: ${of} ≤ ${most} × ${to}`, measured, met: ratio.median <= most }];
    }),
  );
  const hot = results.hot;
  if (!hot) return goals;
  const both = hot['hg-both'];
  const own = Math.max(0, both.bytes - hot.floor.bytes);
  const awaited = spread([
    hot['hg-acquire'].cpuNs.median / (hot['hg-both'].cpuNs.median + hot['await-resolved'].cpuNs.median),
  ]);
  return [
    { goal: 'hot: hg-both ≤ 200 ns', measured: `${figure(both.cpuNs.median)} ns`, met: both.cpuNs.median <= 200 },
    { goal: "hot: hg-both allocates nothing beyond the clock's own", measured: `${figure(own)} B/op`, met: own < 1 },
    ...goals,
    {
      goal: 'hot: hg-acquire ≤ 1.2 × (hg-both + await of a resolved promise)',
      measured: `${figure(awaited.median)}×`,
      met: awaited.median <= 1.2,
    },
  ];
}
