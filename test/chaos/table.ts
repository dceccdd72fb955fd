import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Scenario } from './scenario.js';
import { LEASE_MS, type Outcome, POLICY } from './stage.js';

const PAGE = fileURLToPath(new URL('../../docs/guarantees.md', import.meta.url));
const BEGIN = '<!-- chaos:begin -->';
const END = '<!-- chaos:end -->';

/** What the page says between the markers; empty where there is no such page yet. */
function tableOf(page: string): string {
  const begin = page.indexOf(BEGIN);
  return begin < 0 ? '' : page.slice(begin + BEGIN.length, page.indexOf(END));
}

/** Scenarios that the page has no row for, or one with another bound. */
export function missingRows(scenarios: readonly Scenario[]): string[] {
  const table = existsSync(PAGE) ? tableOf(readFileSync(PAGE, 'utf8')) : '';
  return scenarios.filter((scenario) => !table.includes(`\n${heading(scenario)}`)).map(({ name }) => name);
}

/** Writes the table; scenarios that were not played this time keep the row they have. */
export function writeTable(scenarios: readonly Scenario[], outcomes: ReadonlyMap<Scenario, Outcome>): void {
  const page = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '';
  const old = tableOf(page).split('\n');
  const rows = scenarios.flatMap((scenario) => {
    const outcome = outcomes.get(scenario);
    if (outcome) return [row(scenario, outcome)];
    return old.filter((line) => line.startsWith(heading(scenario)));
  });
  const table = `${BEGIN}\n${introduction()}\n\n${HEAD}\n${rows.join('\n')}\n${END}`;
  const written = page.includes(BEGIN)
    ? page.replace(`${BEGIN}${tableOf(page)}${END}`, () => table)
    : `${page}${page === '' ? '' : '\n'}${table}\n`;
  writeFileSync(PAGE, written);
}

function introduction(): string {
  const { rate, burst } = POLICY.ceiling;
  return (
    `Played by \`npm run chaos\` on ${cpus().length} shared cores: 5 processes (50 limiters where it says so), each behind ` +
    `a proxy of its own, asking for three times a ceiling of ${rate}/s with a burst of ${burst}, leases of ` +
    `${LEASE_MS / 1_000} s. *Over*: tokens admitted beyond burst + rate × length in the worst window of those the bound ` +
    'speaks of, from every admission’s own clock reading. *Back*: until the first second in which 95 % of the rate is ' +
    'admitted, from the end of the fault. *Wait*: the longest of any `acquire` without `maxWaitMs`.'
  );
}

const HEAD =
  '| fault | allowed over-admission | over | back | wait | unhandled rejections |\n' +
  '| --- | --- | --- | --- | --- | --- |';

function heading({ name, bound }: Scenario): string {
  return `| ${name} | ${bound} |`;
}

function row(scenario: Scenario, { over, backAfterMs, longestWaitMs, unhandledRejections }: Outcome): string {
  const back = backAfterMs === undefined ? '–' : `${(backAfterMs / 1_000).toFixed(1)} s`;
  const cells = [Math.max(0, over).toFixed(0), back, `${longestWaitMs.toFixed(0)} ms`, unhandledRejections];
  return `${heading(scenario)} ${cells.join(' | ')} |`;
}
