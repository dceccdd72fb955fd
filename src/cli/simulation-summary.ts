import type { BucketReport, Report, Scenario } from '../simulation/index.js';
import { count, percent, type Screen } from '../terminal/screen.js';
import { textTable } from '../terminal/table.js';
import type { Milliseconds } from '../units.js';

/** The report of a simulation as lines of text. */
export function showSimulation(scenario: Scenario, report: Report, screen: Screen): void {
  const { buckets, others, groups, store, settled } = report;
  const instances = groups.reduce((sum, group) => sum + group.instances, 0);
  screen.line(
    `${screen.style('bold', scenario.name ?? 'A scenario')}: ${count(instances)} instances, ` +
      `${seconds(report.durationMs)} (measured over the last ${seconds(report.measuredMs)}), seed ${report.seed}`,
  );
  const section = (lines: readonly string[]): void => {
    screen.line();
    for (const [index, line] of lines.entries()) screen.line(`  ${index === 0 ? screen.style('dim', line) : line}`);
  };
  if (buckets.length > 0) section(textTable([BUCKET_HEAD, ...buckets.map(bucketCells)]));
  if (others.buckets > 0)
    screen.line(
      `  ${count(others.buckets)} other keys: ${percent(others.ofIdeal)} of the ideal, ` +
        `${percent(others.falseDenials, 2)} denied falsely`,
    );
  section(textTable([GROUP_HEAD, ...groups.map(groupCells)]));
  section(['for the whole fleet', ...textTable(fleetRows(report))]);
  section([
    'time to converge (97 % of what an ideal bucket admits, over a second)',
    ...textTable(settled.map((mark) => [`after ${mark.after}, at ${seconds(mark.atMs)}`, settledText(mark.inMs)])),
  ]);
  screen.line();
  screen.line(
    report.windowsOver === 0
      ? screen.style(['bold', 'green'], verdictText(report))
      : screen.style(['bold', 'red'], verdictText(report)),
  );
  if (store.failures > 0)
    screen.line(screen.style('dim', `${count(store.failures)} lease calls were lost or came too late.`));
}

/** The reports of a scenario under several seeds, a line for each. */
export function showSeeds(scenario: Scenario, reports: readonly Report[], screen: Screen): void {
  screen.line(`${screen.style('bold', scenario.name ?? 'A scenario')}: ${count(reports.length)} seeds`);
  screen.line();
  const head = ['seed', 'worst window', 'windows over', 'of the ideal', 'fairness', 'calls per 1,000', 'stranded'];
  const rows = reports.map(({ seed, worstWindow, windowsOver, buckets: [first], others, store, stranded }) => [
    String(seed),
    windowText(worstWindow),
    count(windowsOver),
    percent(first?.ofIdeal ?? others.ofIdeal),
    first?.fairness?.jain.toFixed(4) ?? '–',
    (store.callsPerDecision * 1_000).toFixed(1),
    tokens(stranded),
  ]);
  for (const line of textTable([head, ...rows])) screen.line(`  ${line}`);
  screen.line();
  const broken = reports.filter(({ windowsOver }) => windowsOver > 0).map(({ seed }) => seed);
  screen.line(
    broken.length === 0
      ? screen.style(['bold', 'green'], 'The bound held under every seed.')
      : screen.style(['bold', 'red'], `THE BOUND WAS BROKEN under ${broken.length} of them, such as ${broken[0]}.`),
  );
}

export function verdictText({ windowsOver, worstWindow }: Report): string {
  if (worstWindow === undefined) return 'No policy has a ceiling: there was no bound to hold.';
  if (windowsOver === 0) return 'The bound held: no window of any length was above it.';
  return `THE BOUND WAS BROKEN: by ${tokens(worstWindow)} tokens in the worst window; ${count(windowsOver)} admissions ended one.`;
}

export const BUCKET_HEAD = [
  'bucket',
  'offered',
  'admitted',
  'utilisation',
  'of the ideal',
  'falsely denied',
  'fairness',
  'worst window',
];

export function bucketCells(bucket: BucketReport): string[] {
  const { policy, key, offered, admitted, utilisation, ofIdeal, falseDenials, fairness, worstWindow } = bucket;
  return [
    `${policy} ${key}`,
    count(offered),
    count(admitted),
    utilisation === undefined ? '–' : percent(utilisation),
    percent(ofIdeal),
    percent(falseDenials, 2),
    fairness === undefined ? '–' : fairness.jain.toFixed(4),
    windowText(worstWindow),
  ];
}

export const GROUP_HEAD = ['group', 'instances', 'calls', 'admitted', 'denied', 'waited', 'mean wait', 'longest wait'];

export function groupCells(group: Report['groups'][number]): string[] {
  return [
    group.name,
    count(group.instances),
    count(group.calls),
    count(group.admitted),
    count(group.denied),
    count(group.waited),
    group.waited === 0 ? '–' : milliseconds(group.waitedMs / group.waited),
    group.waited === 0 ? '–' : milliseconds(group.longestWaitMs),
  ];
}

/** What is told of the fleet as a whole: names and values. */
export function fleetRows({ store, stranded, outstanding }: Report): [string, string][] {
  return [
    ['ceiling calls per 1,000 decisions', (store.callsPerDecision * 1_000).toFixed(1)],
    ['ceiling calls per second and instance', store.callsPerInstanceSecond.toFixed(2)],
    ['ceiling calls per second', count(store.callsPerSecond)],
    ['most round trips of one instance at one moment', count(store.mostTripsATick)],
    ['stranded tokens (leased, never spent)', tokens(stranded)],
    ['outstanding tokens at the end', tokens(outstanding)],
  ];
}

export function settledText(inMs: Milliseconds | undefined): string {
  return inMs === undefined ? 'not within the run' : `within ${seconds(inMs)}`;
}

/** How far the worst window was from its bound. */
function windowText(worst: number | undefined): string {
  if (worst === undefined) return '–';
  if (worst === Number.NEGATIVE_INFINITY) return 'none';
  return worst > 1e-6 ? `${tokens(worst)} OVER` : `${tokens(Math.max(0, -worst))} below`;
}

function tokens(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 2 });
}

export function seconds(ms: Milliseconds): string {
  return `${(ms / 1_000).toLocaleString('en-US', { maximumFractionDigits: 1 })} s`;
}

function milliseconds(ms: Milliseconds): string {
  return `${ms.toLocaleString('en-US', { maximumFractionDigits: 1 })} ms`;
}
