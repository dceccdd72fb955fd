// Fair shares and few store calls: all scenarios with their targets, on virtual time.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { denialCost, storeCallMs } from './shares/costs.mjs';
import { scenarios } from './shares/scenarios.mjs';

export const summary = 'fair shares and store calls of simulated fleets, against their targets';

const HELP = `npm run bench -- shares [options]

  --json          the results as JSON, reports included
  --only <text>   scenarios whose id or title contains the text
  --seed <n>      another seed (default 1)
  --rule <name>   another allotment rule (see bench/shares/rules.mjs)
  --jobs <n>      scenarios at a time (default: the number of cores, at most 4)
`;

export async function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      json: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      seed: { type: 'string', default: '1' },
      rule: { type: 'string' },
      jobs: { type: 'string', default: String(Math.min(4, availableParallelism())) },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const chosen = scenarios.filter(({ id, title }) => id.includes(values.only) || title.includes(values.only));
  if (chosen.length === 0) throw new Error(`Expected --only to match a scenario, got ${JSON.stringify(values.only)}.`);
  const seed = Number(values.seed);
  const progress = new Map();
  const show = () => {
    if (!process.stderr.isTTY) return;
    const parts = [...progress].map(([id, part]) => `${id} ${Math.round(part * 100)} %`);
    process.stderr.write(`\r\u001b[2K${parts.join('   ')}`);
  };
  const rows = await inParallel(chosen, Math.max(1, Number(values.jobs)), async (entry) => {
    progress.set(entry.id, 0);
    const result = await simulateInThread({ ...entry.scenario, seed }, values.rule, (part) => {
      progress.set(entry.id, part);
      show();
    });
    progress.delete(entry.id);
    show();
    const row = judge(entry, result);
    if (!values.json) printRow(row);
    return row;
  });
  // Measured last and alone, as they look at the real clock.
  if (values.rule === undefined) for (const row of rows) await measure(row, values.json);
  const missed = rows.flatMap(({ id, checks }) => checks.filter(({ ok }) => !ok).map(({ name }) => `${id}: ${name}`));
  if (values.json) console.log(JSON.stringify({ seed, rule: values.rule ?? 'fair-level', rows: rows.map(({ entry, ...row }) => row) }, null, 1));
  else console.log(`\nseed ${seed}: ${rows.length} scenarios, ${missed.length === 0 ? 'all targets hold' : `missed: ${missed.join('; ')}`}`);
  return missed.length === 0 ? 0 : 1;
}

function judge(entry, { report, wallMs }) {
  const checks = entry.targets.map(({ name, of, target, holds, sign }) => {
    const value = of(report);
    return { name, value, target, sign, ok: holds(value) };
  });
  const allowance = entry.windowMayExceedBy ?? 0;
  checks.push({
    name: 'over B + R·w',
    value: Math.max(0, report.worstWindow),
    target: allowance,
    sign: '≤',
    ok: report.worstWindow <= allowance + 1e-6,
  });
  return { id: entry.id, title: entry.title, checks, speed: report.durationMs / wallMs, wallMs, report, entry };
}

async function measure(row, quiet) {
  const { storeCalls, denialCost: most } = row.entry;
  const add = (check) => {
    row.checks.push(check);
    if (!quiet) console.log(`${' '.repeat(16)}${text(check)}`);
  };
  if (storeCalls) {
    const { mean, p99 } = storeCallMs(storeCalls);
    add({ name: `${row.id}: store call, mean ms`, value: mean, target: storeCalls.target, sign: '≤', ok: mean <= storeCalls.target });
    add({ name: `${row.id}: store call, p99 ms`, value: p99, target: storeCalls.target, sign: '≤', ok: p99 <= storeCalls.target });
  }
  if (most) {
    const cost = await denialCost();
    add({ name: `${row.id}: denied ÷ allowed path`, value: cost, target: most, sign: '≤', ok: cost <= most });
  }
}

function printRow({ id, title, checks, speed }) {
  console.log(`${id.padEnd(15)} ${title}   (${speed.toFixed(0)} × real time)`);
  for (const check of checks) console.log(`${' '.repeat(16)}${text(check)}`);
}

function text({ name, value, target, sign, ok }) {
  return `${ok ? '✓' : '✗'} ${name.padEnd(22)} ${number(value).padStart(10)}   ${sign} ${number(target)}`;
}

function number(value) {
  if (value === 0 || Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(4);
}

function simulateInThread(scenario, rule, onProgress) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./shares/worker.mjs', import.meta.url), {
      workerData: { scenario, rule },
      // Most of what a run makes is short-lived, but not that short.
      resourceLimits: { maxYoungGenerationSizeMb: 64 },
    });
    worker.on('message', (message) => ('report' in message ? resolve(message) : onProgress(message.progress)));
    worker.on('error', reject);
  });
}

async function inParallel(items, jobs, work) {
  const results = new Array(items.length);
  let next = 0;
  await Promise.all(
    Array.from({ length: jobs }, async () => {
      while (next < items.length) {
        const index = next++;
        results[index] = await work(items[index]);
      }
    }),
  );
  return results;
}
