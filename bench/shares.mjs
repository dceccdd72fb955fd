import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { figure } from './harness/report.mjs';
import { denialCost, storeCallMs } from './shares/costs.mjs';
import { scenarios } from './shares/scenarios.mjs';

export const summary = 'fair shares and store calls of simulated fleets: every scenario against its targets';

/** `--rule`: one of the other allotment rules in shares/rules.mjs, to compare. `--jobs`: scenarios at a time. */
export const options = { seed: { type: 'string' }, rule: { type: 'string' }, jobs: { type: 'string' } };

export async function* run({ quick, only = '', seed: seedText = '1', rule, jobs, progress, meanwhile }) {
  const seed = Number(seedText);
  const chosen = scenarios.filter(({ id, slow }) => id.startsWith(only) && !(quick && slow));
  if (chosen.length === 0)
    throw new Error(`Expected --only to be the beginning of one of ${scenarios.map(({ id }) => id).join(', ')}.`);
  const finished = [];
  meanwhile(() => partOf(finished, seed, rule));
  const results = await inParallel(chosen, Number(jobs ?? Math.min(4, availableParallelism())), async (entry) => {
    const result = await simulateInThread({ ...entry.scenario, seed }, rule, (part) => {
      if (process.stderr.isTTY)
        progress(`${finished.length} of ${chosen.length} done; ${entry.id} ${Math.round(part * 100)} %`);
    });
    progress(`${entry.id}: ${result.speed.toFixed(0)} × real time`);
    const judged = { entry, ...result, checks: judge(entry, result.report) };
    finished.push(judged);
    return judged;
  });
  // Measured last and alone, as they look at the real clock.
  if (rule === undefined) for (const result of results) result.checks.push(...(await measure(result.entry, progress)));
  yield partOf(results, seed, rule);
}

function partOf(results, seed, rule) {
  return {
    tables: [
      {
        caption: `Allotment rule: ${rule ?? 'fair level'}; seed ${seed}. Shares are held against max-min shares of what each instance was offered.`,
        head: [
          'scenario',
          'utilisation',
          'Jain',
          'smallest',
          'largest',
          'calls/inst·s',
          'calls/token',
          'worst window − (B + R·w)',
          '× real time',
        ],
        rows: results.map(tableRow),
      },
    ],
    goals: results.flatMap(({ entry, checks }) =>
      checks.map(({ name, value, target, sign, ok }) => ({
        goal: `${entry.id}: ${name} ${sign} ${figure(target)}`,
        measured: exactly(value),
        met: ok,
      })),
    ),
    data: {
      seed,
      rule: rule ?? 'fair level',
      scenarios: results.map(({ entry, report, checks, speed }) => ({ ...entry, report, checks, speed })),
    },
  };
}

function judge(entry, report) {
  const checks = entry.targets.map(({ name, of, target, holds, sign }) => {
    const value = of(report);
    return { name, value, target, sign, ok: holds(value) };
  });
  const allowance = entry.windowMayExceedBy ?? 0;
  const over = Math.max(0, report.worstWindow);
  checks.push({ name: 'tokens over B + R·w', value: over, target: allowance, sign: '≤', ok: over <= allowance + 1e-6 });
  return checks;
}

async function measure({ storeCalls, denialCost: most }, progress) {
  const checks = [];
  const atMost = (name, value, target) => checks.push({ name, value, target, sign: '≤', ok: value <= target });
  if (storeCalls) {
    progress('store calls');
    const { mean, p99 } = storeCallMs(storeCalls);
    atMost('store call, mean ms', mean, storeCalls.target);
    atMost('store call, p99 ms', p99, storeCalls.target);
  }
  if (most) {
    progress('denied path');
    atMost('denied ÷ allowed path', await denialCost(), most);
  }
  return checks;
}

function tableRow({ entry, report, speed }) {
  const [bucket] = report.buckets;
  const { jain, smallest, largest } = bucket?.fairness ?? {};
  return [
    entry.title,
    exactly(bucket?.utilisation),
    exactly(jain),
    exactly(smallest),
    exactly(largest),
    figure(report.store.callsPerInstanceSecond),
    figure(report.store.callsPerToken),
    figure(report.worstWindow),
    figure(speed),
  ];
}

/** Three decimals where they matter. */
function exactly(value) {
  return value !== undefined && value > 0 && value < 10 ? value.toFixed(value < 0.01 ? 5 : 3) : figure(value);
}

function simulateInThread(scenario, rule, onProgress) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('shares/worker.mjs', import.meta.url), {
      workerData: { scenario, rule },
      // Most of what a run makes is short-lived, but not that short.
      resourceLimits: { maxYoungGenerationSizeMb: 64 },
    });
    worker.on('message', (message) => ('report' in message ? resolve(message) : onProgress(message.progress)));
    worker.on('error', reject);
    worker.on('exit', (code) => reject(new Error(`The thread of a scenario ended early (${code}).`)));
  });
}

async function inParallel(items, jobs, work) {
  const results = new Array(items.length);
  let next = 0;
  await Promise.all(
    Array.from({ length: Math.max(1, jobs) }, async () => {
      while (next < items.length) {
        const index = next++;
        results[index] = await work(items[index]);
      }
    }),
  );
  return results;
}
