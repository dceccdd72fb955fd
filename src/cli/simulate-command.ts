import type { Report, Scenario } from '../simulation/index.js';
import { fileFlag, parseFlags, UsageError, wholeNumberFlag } from '../terminal/flags.js';
import { count, Screen } from '../terminal/screen.js';
import { type Command, checkReport, EXIT, type Streams, showJson, writeReport } from './command.js';
import { InputFile } from './input-file.js';
import { simulationPage } from './simulation-page.js';
import { showSeeds, showSimulation } from './simulation-summary.js';
import { ScenarioFault, simulateSeeds } from './worker-simulation.js';

const USAGE = `Usage: headgate simulate SCENARIO.json [options]

Runs a whole fleet on virtual time, with the real limiters and the real ledger, and tells how it did.
SCENARIO.json says what the fleet is, what is asked of it and what befalls it (docs/simulation.md);
comments are allowed in it, and - is standard input. The same scenario and seed give the same report.

  --seed N             everything random follows from it                 (the scenario's, or 1)
  --seeds N            run it N times, with N seeds from there on, on all cores, and show a line for each
  --json               print the whole report as JSON; with --seeds an array of them
  --report FILE.html   write a page with the plots, which needs nothing but itself

The exit code is 1 if any window of any bucket was over its bound.
`;

const FLAGS = {
  seed: { type: 'string' },
  seeds: { type: 'string' },
  json: { type: 'boolean' },
  report: { type: 'string' },
} as const;
const MOST_SEEDS = 10_000;

export const simulateCommand: Command = {
  summary: 'run a fleet that a scenario describes, on virtual time',
  usage: USAGE,
  async run(args, streams) {
    const { values, positionals } = parseFlags(args, FLAGS, true);
    const [file, ...more] = positionals;
    if (file === undefined || more.length > 0)
      throw new UsageError(`Expected one scenario file, got ${positionals.length}. See headgate simulate --help`);
    const seed = wholeNumberFlag('seed', values.seed, 0, Number.MAX_SAFE_INTEGER - MOST_SEEDS);
    const runs = wholeNumberFlag('seeds', values.seeds, 1, MOST_SEEDS);
    const page = fileFlag('report', values.report);
    if (runs !== undefined && page !== undefined)
      throw new UsageError('Expected --report for one seed, got it together with --seeds.');
    await checkReport(page);
    const input = await InputFile.read(file, streams.stdin);
    // What it is instead, if it is no scenario, the simulation says.
    const scenario = input.value as Scenario;
    const first = seed ?? (runs === undefined ? undefined : 1);
    const seeds = Array.from({ length: runs ?? 1 }, (_, i) => (first === undefined ? undefined : first + i));
    const reports = await simulated(input, scenario, seeds, streams);
    const [report] = reports as [Report];
    if (page !== undefined) await writeReport(page, simulationPage(scenario, report));
    if (values.json) showJson(runs === undefined ? report : reports, streams);
    else if (runs === undefined) showSimulation(scenario, report, new Screen(streams.stdout));
    else showSeeds(scenario, reports, new Screen(streams.stdout));
    return reports.some(({ windowsOver }) => windowsOver > 0) ? EXIT.found : EXIT.ok;
  },
};

async function simulated(
  input: InputFile,
  scenario: Scenario,
  seeds: readonly (number | undefined)[],
  { stderr }: Streams,
): Promise<Report[]> {
  const screen = new Screen(stderr);
  const began = performance.now();
  try {
    return await simulateSeeds(scenario, seeds, (done, virtualMs) => {
      const pace = virtualMs / (performance.now() - began);
      screen.progress(done, `${count(virtualMs / 1_000)} s, ${count(pace)} × real time`);
    });
  } catch (error) {
    if (!(error instanceof ScenarioFault)) throw error;
    throw input.wrong(error.path, error.message);
  } finally {
    screen.end();
  }
}
