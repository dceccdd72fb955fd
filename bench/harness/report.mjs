import { describeMachine } from './machine.mjs';

/**
 * What a benchmark has found so far. It comes in parts: `{ tables, goals, versions, data }`, each of them optional, with
 * `tables` of `{ caption, head, rows, notes }`, `goals` of `{ goal, measured, met }`, and under `data`, by name, whatever
 * else `--json` should carry. Tables are printed as they come, goals at the end; with `--json` everything at the end.
 */
export class Report {
  #json;
  #full;
  #print;

  constructor({ benchmark, quick, json }, print = console.log) {
    this.#json = json;
    this.#print = print;
    const machine = describeMachine();
    this.#full = { benchmark, quick, machine, complete: true, versions: {}, tables: [], goals: [], data: {} };
    if (!json) print(headOf(this.#full));
  }

  add({ tables = [], goals = [], versions = {}, data = {} }) {
    this.#full.tables.push(...tables);
    this.#full.goals.push(...goals);
    Object.assign(this.#full.versions, versions);
    Object.assign(this.#full.data, data);
    if (!this.#json && tables.length > 0) this.#print(tables.map(tableText).join('\n'));
  }

  /** `complete`: whether the benchmark has come to its end. */
  end(complete) {
    const full = { ...this.#full, complete, loadAtEnd: describeMachine().load };
    this.#print(this.#json ? JSON.stringify(full, null, 2) : endOf(full));
  }
}

function headOf({ benchmark, quick, machine }) {
  const { cpu, cores, memoryGiB, system, node, v8, redis, load, commit } = machine;
  return `
# ${benchmark}${quick ? ' (quick: fewer repetitions, too few to quote)' : ''}

${cores} × ${cpu}, ${memoryGiB} GiB, ${system}; Node ${node} (V8 ${v8}), Redis ${redis}; headgate ${commit}
Load average ${load.join(' ')} before.`;
}

/** Cells are text; all but the first of a row are aligned to the right. */
function tableText({ caption, head, rows, notes = [] }) {
  return [`\n${caption}\n`, markdownTable(head, rows), ...notes.map((note) => `\n${note}`)].join('\n');
}

function endOf({ complete, versions, goals, loadAtEnd }) {
  const lines = goals.map(({ goal, measured, met }) => [goal, measured, met ? 'met' : 'MISSED']);
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    ...(complete ? [] : ['\nCut short: the rest was not measured.']),
    ...(lines.length > 0 ? [`\nGoals\n\n${markdownTable(['goal', 'measured', ''], lines)}`] : []),
    `\n${list.length > 0 ? `With ${list.join(', ')}. ` : ''}Load average ${loadAtEnd.join(' ')} after.`,
  ].join('\n');
}

export function markdownTable(head, rows) {
  const widths = head.map((title, column) =>
    Math.max(...[title, ...rows.map((row) => row[column] ?? '')].map((cell) => cell.length), 3),
  );
  const line = (cells) =>
    `| ${widths.map((width, column) => (column === 0 ? (cells[column] ?? '').padEnd(width) : (cells[column] ?? '').padStart(width))).join(' | ')} |`;
  const rule = `|${widths.map((width, column) => (column === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

/** Three significant digits, with a comma at the thousands. */
export function figure(value) {
  if (value === undefined || Number.isNaN(value)) return '';
  if (!Number.isFinite(value)) return '∞';
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en');
  if (size >= 10) return value.toFixed(1);
  if (size >= 0.01 || size === 0) return value.toFixed(2);
  return value.toPrecision(2);
}
