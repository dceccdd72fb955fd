import { InvalidScenarioError, type Report, type Scenario, simulate } from '../simulation/index.js';
import { fileFlag, parseFlags, UsageError, wholeNumberFlag } from '../terminal/flags.js';
import { count, Screen } from '../terminal/screen.js';
import { type Command, checkReport, EXIT, type Streams, showJson, writeReport } from './command.js';
import { InputFile } from './input-file.js';
import { simulationPage } from './simulation-page.js';
import { showSimulation } from './simulation-summary.js';

const USAGE = `Usage: headgate simulate SCENARIO.json [options]

Runs a whole fleet on virtual time, with the real limiters and the real ledger, and tells how it did.
SCENARIO.json says what the fleet is, what is asked of it and what befalls it (docs/simulation.md);
comments are allowed in it, and - is standard input. The same scenario and seed give the same report.

  --seed N             everything random follows from it                 (the scenario's, or 1)
  --json               print the whole report as JSON
  --report FILE.html   write a page with the plots, which needs nothing but itself

The exit code is 1 if any window of any bucket was over its bound.
`;

const FLAGS = { seed: { type: 'string' }, json: { type: 'boolean' }, report: { type: 'string' } } as const;

export const simulateCommand: Command = {
  summary: 'run a fleet that a scenario describes, on virtual time',
  usage: USAGE,
  async run(args, streams) {
    const { values, positionals } = parseFlags(args, FLAGS, true);
    const [file, ...more] = positionals;
    if (file === undefined || more.length > 0)
      throw new UsageError(`Expected one scenario file, got ${positionals.length}. See headgate simulate --help`);
    const seed = wholeNumberFlag('seed', values.seed, 0, Number.MAX_SAFE_INTEGER);
    const page = fileFlag('report', values.report);
    await checkReport(page);
    const input = await InputFile.read(file, streams.stdin);
    const { scenario, report } = await simulated(input, seed, streams);
    if (page !== undefined) await writeReport(page, simulationPage(scenario, report));
    if (values.json) showJson(report, streams);
    else showSimulation(scenario, report, new Screen(streams.stdout));
    return report.windowsOver > 0 ? EXIT.found : EXIT.ok;
  },
};

async function simulated(input: InputFile, seed: number | undefined, { stderr }: Streams) {
  // What it is instead, if it is no scenario, `simulate` says.
  const given = input.value as Scenario;
  const scenario = seed === undefined ? given : { ...given, seed };
  const screen = new Screen(stderr);
  const began = performance.now();
  try {
    const report: Report = await simulate(scenario, {
      onProgress: ({ atMs, durationMs }) => {
        const pace = atMs / (performance.now() - began);
        screen.progress(atMs / durationMs, `${count(atMs / 1_000)} s, ${count(pace)} × real time`);
      },
    });
    return { scenario, report };
  } catch (error) {
    if (!(error instanceof InvalidScenarioError)) throw error;
    throw input.wrong(error.path, error.message);
  } finally {
    screen.end();
  }
}
