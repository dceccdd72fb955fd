// Runs one benchmark: `npm run bench -- <name> [options]`. Each file beside this one is a benchmark of its own name; it
// exports `summary`, a line for the list below, and `run(args)`, which may answer an exit code.
import { readdir } from 'node:fs/promises';

const [name, ...args] = process.argv.slice(2);
const names = (await readdir(new URL('.', import.meta.url)))
  .filter((file) => file.endsWith('.mjs') && file !== 'main.mjs')
  .map((file) => file.slice(0, -'.mjs'.length))
  .sort();

if (name !== undefined && names.includes(name)) {
  const { run } = await import(new URL(`${name}.mjs`, import.meta.url).href);
  process.exitCode = (await run(args)) ?? 0;
} else {
  if (name !== undefined) console.error(`Expected one of ${names.join(', ')}, got ${JSON.stringify(name)}.\n`);
  console.error('npm run bench -- <name> [options]\n');
  for (const known of names) {
    const { summary } = await import(new URL(`${known}.mjs`, import.meta.url).href);
    console.error(`  ${known.padEnd(12)} ${summary ?? ''}`);
  }
  process.exitCode = name === undefined ? 0 : 1;
}
