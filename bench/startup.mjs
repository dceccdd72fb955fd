import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { versionsOf } from './harness/machine.mjs';
import { figure } from './harness/report.mjs';
import { shuffle, spread } from './harness/statistics.mjs';

export const summary = 'what a process pays to import headgate, and until its first decision';

const answer = promisify(execFile);
const ROOT = new URL('..', import.meta.url);

const FIRST_DECISION = (options) => `
  const { createLimiter } = await import('headgate');
  const policies = [{ name: 'api', local: { rate: 1, burst: 1 }, ceiling: { rate: 1, burst: 1 } }];
  const limiter = await createLimiter({ policies, ${options} });
  if (!limiter.policy('api').tryAcquire('tenant-1')) throw new Error('denied');`;

const CONTENDERS = {
  core: {
    label: "import 'headgate', createLimiter without telemetry, first tryAcquire",
    code: FIRST_DECISION('telemetry: false'),
  },
  telemetry: {
    label: 'the same, with @opentelemetry/api looked for and found',
    code: FIRST_DECISION(''),
  },
  ioredis: { label: "import 'ioredis', for comparison", code: "await import('ioredis');" },
  rlf: { label: "import 'rate-limiter-flexible', for comparison", code: "await import('rate-limiter-flexible');" },
};

/** A module of its own process, which tells what it had used before the code, and what it had used after. */
const timed = (code) => `
  const began = { ms: performance.now(), cpu: process.cpuUsage() };
  ${code}
  const ended = { ms: performance.now(), cpu: process.cpuUsage() };
  const cpuMs = ({ user, system }) => (user + system) / 1_000;
  const bare = cpuMs(began.cpu);
  console.log(JSON.stringify({ ms: ended.ms - began.ms, cpu: cpuMs(ended.cpu) - bare, bare }));
  process.exit();`;

export async function* run({ quick, progress, meanwhile }) {
  const rounds = quick ? 3 : 21;
  const each = Object.fromEntries(Object.keys(CONTENDERS).map((name) => [name, []]));
  meanwhile(() => (Object.values(each).every(({ length }) => length > 0) ? partOf(each) : undefined));
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}`);
    for (const name of shuffle(Object.keys(CONTENDERS))) {
      const args = ['--input-type=module', '-e', timed(CONTENDERS[name].code)];
      each[name].push(JSON.parse((await answer(process.execPath, args, { cwd: ROOT })).stdout));
    }
  }
  yield partOf(each);
}

function partOf(each) {
  const core = spread(each.core.map(({ cpu }) => cpu));
  return {
    versions: versionsOf(['@opentelemetry/api', 'ioredis', 'rate-limiter-flexible']),
    tables: [
      {
        caption: 'A process that has just started',
        head: ['', 'CPU ms', 'over rounds', '× the CPU of a bare start', 'ms'],
        rows: Object.entries(each).map(([name, times]) => {
          const cpu = spread(times.map((one) => one.cpu));
          const ratio = spread(times.map((one) => one.cpu / one.bare));
          const wall = spread(times.map(({ ms }) => ms));
          return [
            CONTENDERS[name].label,
            figure(cpu.median),
            `${figure(cpu.least)}–${figure(cpu.most)}`,
            `${figure(ratio.median)}×`,
            figure(wall.median),
          ];
        }),
      },
    ],
    goals: [
      {
        goal: 'import and first decision ≤ 40 ms of CPU',
        measured: `${figure(core.median)} ms`,
        met: core.median <= 40,
      },
    ],
    data: { each },
  };
}
