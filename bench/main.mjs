// npm run bench -- <name> [--quick] [--json]
//
// Every bench/<name>.mjs is a benchmark: it exports `summary`, one line, and `run(context)`, a generator of the parts of a
// report (harness/report.mjs), each as soon as it is known. It may export `options`, in the form of node:util's parseArgs,
// that it takes besides. Whoever ends it before its end sees what has been measured so far.
import { readdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { clearProgress, makeProgress } from './harness/progress.mjs';
import { Report } from './harness/report.mjs';

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
const { quick = false, json = false } = values;

const report = new Report({ benchmark: name, quick, json }, (text) => {
  clearProgress();
  console.log(text);
});
/** What the part that is being measured would say now. */
let underWay;
const cutShort = () => {
  const part = underWay?.();
  if (part) report.add(part);
  report.end(false);
};
// Before anything is started: whatever else ends with this process is told when it exits.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.once(signal, () => {
    cutShort();
    process.exit(1);
  });

const context = {
  ...values,
  quick,
  progress: makeProgress(),
  /** Until the next part comes: `tell()` answers what it would be if nothing more were measured, or undefined. */
  meanwhile: (tell) => {
    underWay = tell;
  },
};
try {
  for await (const part of run(context)) {
    underWay = undefined;
    report.add(part);
  }
} catch (error) {
  cutShort();
  throw error;
}
report.end(true);
