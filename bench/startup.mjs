import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { figure } from './harness/report.mjs';
import { shuffle, spread } from './harness/statistics.mjs';

export const summary = 'what a process pays to import headgate, and until its first decision';

const answer = promisify(execFile);
const ROOT = new URL('..', import.meta.url);

/** Each a module of its own process, which prints the milliseconds it measured. */
const CONTENDERS = {
  core: {
    label: "import 'headgate', createLimiter without telemetry, first tryAcquire",
    code: `
      const start = performance.now();
      const { createLimiter } = await import('headgate');
      const policies = [{ name: 'api', local: { rate: 1, burst: 1 }, ceiling: { rate: 1, burst: 1 } }];
      const limiter = await createLimiter({ policies, telemetry: false });
      if (!limiter.policy('api').tryAcquire('tenant-1')) throw new Error('denied');
      console.log(performance.now() - start);`,
  },
  telemetry: {
    label: 'the same, with @opentelemetry/api looked for and found',
    code: `
      const start = performance.now();
      const { createLimiter } = await import('headgate');
      const policies = [{ name: 'api', local: { rate: 1, burst: 1 }, ceiling: { rate: 1, burst: 1 } }];
      const limiter = await createLimiter({ policies });
      if (!limiter.policy('api').tryAcquire('tenant-1')) throw new Error('denied');
      console.log(performance.now() - start);`,
  },
  ioredis: {
    label: "import 'ioredis', for comparison",
    code: "const start = performance.now(); await import('ioredis'); console.log(performance.now() - start);",
  },
  rlf: {
    label: "import 'rate-limiter-flexible', for comparison",
    code: "const start = performance.now(); await import('rate-limiter-flexible'); console.log(performance.now() - start);",
  },
};

export async function run({ quick, progress }) {
  const rounds = quick ? 3 : 21;
  const each = Object.fromEntries(Object.keys(CONTENDERS).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}`);
    for (const name of shuffle(Object.keys(CONTENDERS))) {
      const args = ['--input-type=module', '-e', CONTENDERS[name].code];
      each[name].push(Number((await answer(process.execPath, args, { cwd: ROOT })).stdout));
    }
  }
  const core = spread(each.core);
  return {
    tables: [
      {
        caption: 'A process that has just started',
        head: ['', 'ms', 'over rounds'],
        rows: Object.entries(each).map(([name, times]) => {
          const { median, least, most } = spread(times);
          return [CONTENDERS[name].label, figure(median), `${figure(least)}–${figure(most)}`];
        }),
      },
    ],
    goals: [
      { goal: 'import and first decision ≤ 40 ms', measured: `${figure(core.median)} ms`, met: core.median <= 40 },
    ],
    data: each,
  };
}
