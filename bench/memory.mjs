import { fileURLToPath } from 'node:url';
import { headgate } from './contenders/headgate.mjs';
import { peers } from './contenders/memory.mjs';
import { Child } from './harness/children.mjs';
import { versionsOf } from './harness/machine.mjs';
import { figure } from './harness/report.mjs';
import { shuffle, spread } from './harness/statistics.mjs';

export const summary = 'very many keys: bytes each, the longest stall while they come, and what is left when they go';

const CHILD = fileURLToPath(new URL('contenders/memory-child.mjs', import.meta.url));
/** As a process that means to hold millions of keys is started. */
const NODE_ARGUMENTS = ['--expose-gc', '--max-old-space-size=12288'];

const CONTENDERS = {
  strings: 'the key strings alone, in an array',
  'hg-both': 'headgate, both tiers, live lease',
  'hg-local': 'headgate, local tier alone',
  'limiter-bucket': peers['limiter-bucket'].label,
  'limiter-rate': peers['limiter-rate'].label,
  'fastify-store': peers['fastify-store'].label,
  'express-store': peers['express-store'].label,
  'rlf-memory': peers['rlf-memory'].label,
  'leaky-bucket': peers['leaky-bucket'].label,
};

export async function* run({ quick, only, progress, meanwhile }) {
  const million = quick ? 100_000 : 1_000_000;
  const rounds = quick ? 1 : 3;
  const names = Object.keys(CONTENDERS).filter((name) => !only || only.split(',').includes(name));
  const fills = Object.fromEntries(names.map((name) => [name, []]));
  meanwhile(() => fillPart(million, fills));
  for (let round = 0; round < rounds; round++) {
    for (const name of shuffle([...names])) {
      progress(`round ${round + 1} of ${rounds}: ${million.toLocaleString('en')} keys, ${name}`);
      fills[name].push(await askOnce(name, million, 'fill'));
    }
  }
  yield fillPart(million, fills);
  if (!quick) {
    const large = {};
    meanwhile(() => largePart(large));
    for (const name of names.filter((each) => each in headgate)) {
      progress(`4,000,000 keys, ${name}`);
      large[name] = await askOnce(name, 4_000_000, 'fill');
    }
    yield largePart(large);
  }
  progress('keys come and go');
  yield goPart(million, (await askOnce('come-and-go', million, 'comeAndGo')).readings);
}

async function askOnce(name, keys, ask) {
  const child = new Child(CHILD, [name, String(keys)], NODE_ARGUMENTS);
  try {
    return await child.ask({ ask });
  } finally {
    await child.end();
  }
}

/** Bytes over those of the key strings themselves. */
function own(fills, name) {
  const base = fills.strings ? spread(fills.strings.map(({ bytes }) => bytes)).median : 0;
  return spread(fills[name].map(({ bytes }) => bytes - base));
}

function fillPart(million, all) {
  const fills = Object.fromEntries(Object.entries(all).filter(([, each]) => each.length > 0));
  const rows = Object.entries(fills).map(([name, each]) => {
    const bytes = own(fills, name);
    const insert = spread(each.map(({ worstInsert }) => worstInsert));
    return [
      CONTENDERS[name],
      figure(spread(each.map((one) => one.bytes)).median),
      name === 'strings' ? '' : figure(bytes.median),
      name === 'strings' ? '' : `${figure(bytes.least)}–${figure(bytes.most)}`,
      figure(insert.median),
      `${figure(insert.least)}–${figure(insert.most)}`,
      figure(spread(each.map(({ slowInserts }) => slowInserts)).median),
      figure(spread(each.map(({ worstTurn }) => worstTurn)).median),
    ];
  });
  const bytes = fills['hg-both'] && own(fills, 'hg-both');
  return {
    versions: versionsOf([...new Set(Object.keys(fills).flatMap((name) => peers[name]?.package ?? []))]),
    tables: [
      {
        caption: `${million.toLocaleString('en')} live keys of 19 characters, ${Math.max(0, ...Object.values(fills).map(({ length }) => length))} rounds in new processes`,
        head: [
          '',
          'B a key',
          'over the string',
          'over rounds',
          'worst insert ms',
          'over rounds',
          'inserts > 10 ms',
          'worst turn ms',
        ],
        rows,
        notes: ['"Worst turn": the longest that timers and callbacks took between two turns of 500 new keys.'],
      },
    ],
    goals: bytes
      ? [
          {
            goal: 'both tiers: ≤ 100 B a live key over the key string',
            measured: `${figure(bytes.median)} B`,
            met: bytes.median <= 100,
          },
        ]
      : [],
    data: { fills },
  };
}

function largePart(large) {
  return {
    tables: [
      {
        caption: '4,000,000 live keys, one run',
        head: ['', 'B a key, string included', 'worst insert ms', 'at key', 'inserts > 10 ms', 'worst turn ms'],
        rows: Object.entries(large).map(([name, { bytes, worstInsert, worstAt, slowInserts, worstTurn }]) => [
          CONTENDERS[name],
          ...[bytes, worstInsert, worstAt, slowInserts, worstTurn].map(figure),
        ]),
      },
    ],
    goals: Object.entries(large).map(([name, { worstInsert, slowInserts }]) => ({
      goal: `${name}: no insert stops the loop for more than 10 ms up to 4,000,000 keys`,
      measured: `${figure(worstInsert)} ms, ${slowInserts} over 10 ms`,
      met: worstInsert <= 10,
    })),
    data: { large },
  };
}

function goPart(million, readings) {
  const last = readings.at(-1);
  const first = readings[0];
  return {
    tables: [
      {
        caption: `${million.toLocaleString('en')} keys come, are not asked again, and go; then as many others, twice`,
        head: ['', 'keys held', 'MiB', 'keys left', 'MiB left', 'seconds until gone', 'CPU s until gone'],
        rows: readings.map((reading, i) => [
          `set ${i + 1}`,
          ...['keysFull', 'megabytesFull', 'keysLeft', 'megabytesLeft', 'secondsToGo', 'cpuSecondsToGo'].map((field) =>
            figure(reading[field]),
          ),
        ]),
      },
    ],
    goals: [
      {
        goal: 'keys that go unused leave nothing behind',
        measured: `${last.keysLeft} keys, ${figure(last.megabytesLeft)} MiB (${figure(first.megabytesLeft)} after the first set)`,
        met: last.keysLeft === 0 && last.megabytesLeft <= first.megabytesLeft + 8,
      },
    ],
    data: { readings },
  };
}
