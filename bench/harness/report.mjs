/**
 * A report: `tables` of `{ caption, head, rows, notes }`, `goals` of `{ goal, measured, met }`, and under `data` whatever
 * else `--json` should carry. Cells are text; all but the first of a row are aligned to the right.
 */
export function printReport({ benchmark, quick, machine, loadAtEnd, versions, tables, goals = [] }) {
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K');
  const { cpu, cores, memoryGiB, system, node, v8, redis, load, commit } = machine;
  console.log(`\n# ${benchmark}${quick ? ' (quick: fewer repetitions, too few to quote)' : ''}\n`);
  console.log(
    `${cores} × ${cpu}, ${memoryGiB} GiB, ${system}; Node ${node} (V8 ${v8}), Redis ${redis}; headgate ${commit}`,
  );
  console.log(`Load average ${load.join(' ')} before, ${loadAtEnd.join(' ')} after.`);
  if (versions) {
    const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
    console.log(`With ${list.join(', ')}.`);
  }
  for (const { caption, head, rows, notes = [] } of tables) {
    console.log(`\n${caption}\n`);
    console.log(markdownTable(head, rows));
    for (const note of notes) console.log(`\n${note}`);
  }
  if (goals.length > 0) {
    console.log('\nGoals\n');
    console.log(
      markdownTable(
        ['goal', 'measured', ''],
        goals.map(({ goal, measured, met }) => [goal, measured, met ? 'met' : 'MISSED']),
      ),
    );
  }
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
