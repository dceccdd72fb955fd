// npm run bench -- <name> [--quick] [--json]
//
// Every bench/<name>.mjs is a benchmark: it exports `summary`, one line, and `run(context)`, which answers a report as
// harness/report.mjs prints it. It may export `options`, in the form of node:util's parseArgs, that it takes besides.
import { readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { describeMachine } from './harness/machine.mjs';
import { makeProgress } from './harness/progress.mjs';
import { printReport } from './harness/report.mjs';

const known = readdirSync(new URL('.', import.meta.url))
  .filter((file) => file.endsWith('.mjs') && file !== 'main.mjs')
  .map((file) => file.replace('.mjs', ''));

const name = process.argv.slice(2).find((argument) => !argument.startsWith('-'));
if (name === undefined || !known.includes(name)) {
  const lines = await Promise.all(known.map(async (bench) => [bench, (await import(`./${bench}.mjs`)).summary]));
  console.error('Usage: npm run bench -- <name> [--quick] [--json] [--only <what>]\n');
  for (const [bench, summary] of lines) console.error(`  ${bench.padEnd(10)} ${summary}`);
  process.exit(name === undefined ? 0 : 1);
}

const { run, options = {} } = await import(`./${name}.mjs`);
const { values } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean' }, json: { type: 'boolean' }, only: { type: 'string' }, ...options },
});
const machine = describeMachine();
const report = await run({ ...values, quick: values.quick ?? false, progress: makeProgress() });
const full = { benchmark: name, quick: values.quick ?? false, machine, loadAtEnd: describeMachine().load, ...report };
if (values.json) console.log(JSON.stringify(full, null, 2));
else printReport(full);
