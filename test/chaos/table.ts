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

/** Writes the table; what was not measured this time keeps the figures it has. */
export function writeTable(
  scenarios: readonly Scenario[],
  outcomes: ReadonlyMap<Scenario, Outcome>,
  changed: ReadonlyMap<Scenario, Outcome>,
): void {
  const page = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '';
  const old = tableOf(page).split('\n');
  const rows = scenarios.flatMap((scenario) => {
    const known = old.find((line) => line.startsWith(heading(scenario)))?.slice(heading(scenario).length);
    const cells = known?.split('|').map((cell) => cell.trim()) ?? [];
    const outcome = outcomes.get(scenario);
    const meanwhile = changed.get(scenario);
    if (outcome) cells.splice(0, FIGURES, ...figures(outcome));
    if (cells.length < FIGURES) return [];
    const last = meanwhile ? over(meanwhile) : cells[FIGURES] || '–';
    return `${heading(scenario)} ${[...cells.slice(0, FIGURES), last].join(' | ')} |`;
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
    'admitted, from the end of the fault. *Wait*: the longest of any `acquire` without `maxWaitMs`. *Terms changed*: over ' +
    'in one more run, in which the policy is published twice while the fault lasts, raised by half and then cut to half of ' +
    'what it was. Windows count under the terms of their time: before the first policy under the old ones, from then on ' +
    'under the raised ones, and under the cut ones from a lease after all know them; what is allowed grows by half.'
  );
}

const HEAD =
  '| fault | allowed over-admission | over | back | wait | unhandled rejections | over, terms changed |\n' +
  '| --- | --- | --- | --- | --- | --- | --- |';

function heading({ name, bound }: Scenario): string {
  return `| ${name} | ${bound} |`;
}

/** Of a run under terms that stay. */
const FIGURES = 4;

function figures(outcome: Outcome): string[] {
  const { backAfterMs, longestWaitMs, unhandledRejections } = outcome;
  const back = backAfterMs === undefined ? '–' : `${(backAfterMs / 1_000).toFixed(1)} s`;
  return [over(outcome), back, `${longestWaitMs.toFixed(0)} ms`, String(unhandledRejections)];
}

function over(outcome: Outcome): string {
  return Math.max(0, outcome.over).toFixed(0);
}
