import { writeFile } from 'node:fs/promises';
import { UsageError } from '../terminal/flags.js';
import { Screen } from '../terminal/screen.js';
import { type DemoOptions, readOptions, USAGE } from './options.js';
import { judgeReplay } from './replay-verdict.js';
import { renderReport } from './report.js';
import { runDemo } from './run-demo.js';
import { runReplay, showReplay } from './run-replay.js';
import { showVerdict } from './summary.js';
import { judge } from './verdict.js';

/** Parts that a test may replace. */
export interface Seams {
  readonly judge: typeof judge;
  readonly judgeReplay: typeof judgeReplay;
}

/** Runs the command line `args`; answers the exit code. */
export async function main(args: readonly string[], seams: Seams = { judge, judgeReplay }): Promise<number> {
  try {
    const options = readOptions(args);
    if (options.help) {
      process.stdout.write(USAGE);
      return 0;
    }
    const screen = new Screen(options.json ? process.stderr : process.stdout);
    return await (options.replay === undefined ? demo : replay)(options, screen, seams);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.name}: ${error.message}\n\n${USAGE}`);
    return 2;
  }
}

async function demo(options: DemoOptions, screen: Screen, seams: Seams): Promise<number> {
  const history = await runDemo(options, screen);
  const verdict = seams.judge(history);
  showVerdict(verdict, screen);
  if (options.report !== undefined) {
    await writeFile(options.report, renderReport(history, verdict));
    screen.line(`Report: ${options.report}`);
  }
  if (options.json) showJson(verdict);
  return verdict.ok ? 0 : 1;
}

async function replay(options: DemoOptions, screen: Screen, seams: Seams): Promise<number> {
  const history = await runReplay(options, screen);
  const verdict = seams.judgeReplay(history.requests, history.clientTerms, history.globalTerms);
  showReplay(history, verdict, screen);
  const { survey, speed, limits, leaseCalls, leaseFailures } = history;
  if (options.json) showJson({ ...verdict, unparsed: survey.unparsed, speed, limits, leaseCalls, leaseFailures });
  return verdict.ok ? 0 : 1;
}

function showJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}
