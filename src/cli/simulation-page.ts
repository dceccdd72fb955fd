import { escapeHtml, figures, htmlTable, renderPage } from '../page/page.js';
import { colour, type Line, legend, type TimePlot, timePlot } from '../page/time-plot.js';
import type { Report, Scenario, Series } from '../simulation/index.js';
import { count, percent } from '../terminal/screen.js';
import {
  BUCKET_HEAD,
  bucketCells,
  fleetRows,
  GROUP_HEAD,
  groupCells,
  seconds,
  settledText,
  verdictText,
} from './simulation-summary.js';

/** Points of a plot: more can't be told apart on a page. */
const MOST_BINS = 240;

/** The report of a simulation as a page that needs nothing but itself. */
export function simulationPage(scenario: Scenario, report: Report): string {
  const { series, groups, buckets, others, store, stranded, settled } = report;
  const instances = groups.reduce((sum, group) => sum + group.instances, 0);
  const [first] = buckets;
  const heading = scenario.name ?? 'A simulated fleet';
  const plots = [
    {
      heading: 'Tokens a second: what was admitted, what was asked for, and what one ideal bucket admits',
      plot: plotOf(
        report,
        [['admitted', series.admitted]],
        [
          ['asked for', series.offered, 'dashed'],
          ['the ideal', series.ideal, 'ceiling'],
        ],
      ),
    },
    { heading: 'Denied calls a second', plot: plotOf(report, [['denied', series.denied]], []) },
    { heading: 'Calls of the ceiling store a second', plot: plotOf(report, [['lease calls', series.storeCalls]], []) },
  ];
  return renderPage({
    title: `headgate simulate: ${heading}`,
    heading,
    verdict: { text: verdictText(report), good: report.windowsOver === 0 },
    body: [
      `<p class="note">${count(instances)} instances over ${seconds(report.durationMs)} of their time, seed ${report.seed};
figures are those of the last ${seconds(report.measuredMs)}, windows are watched from the start. In the plots an event is marked where it ended.</p>`,
      figures([
        [first?.utilisation === undefined ? '–' : percent(first.utilisation), 'utilisation'],
        [percent(first?.ofIdeal ?? others.ofIdeal), 'of what an ideal bucket admits'],
        [first?.fairness?.jain.toFixed(4) ?? '–', "Jain's index of fairness"],
        [(store.callsPerDecision * 1_000).toFixed(1), 'ceiling calls per 1,000 decisions'],
        [count(stranded), 'stranded tokens'],
      ]),
      ...plots.flatMap(({ heading, plot }) => [`<h2>${escapeHtml(heading)}</h2>`, timePlot(plot), legend(plot)]),
      '<h2>Buckets</h2>',
      htmlTable(
        BUCKET_HEAD,
        buckets.map((bucket) => bucketCells(bucket).map(escapeHtml)),
      ),
      '<h2>Groups</h2>',
      htmlTable(
        GROUP_HEAD,
        groups.map((group) => groupCells(group).map(escapeHtml)),
      ),
      '<h2>The fleet</h2>',
      htmlTable(
        ['', ''],
        fleetRows(report).map((row) => row.map(escapeHtml)),
      ),
      '<h2>Time to converge</h2>',
      htmlTable(
        ['after', 'at', '97 % of the ideal'],
        settled.map(({ after, atMs, inMs }) => [escapeHtml(after), seconds(atMs), settledText(inMs)]),
      ),
    ],
  });
}

type Named = readonly [name: string, levels: readonly number[]];

function plotOf(
  { series, durationMs, settled }: Report,
  bands: readonly Named[],
  lines: readonly (readonly [...Named, Line['look']])[],
): TimePlot {
  const merged = Math.max(1, Math.ceil(series.admitted.length / MOST_BINS));
  const binMs = series.everyMs * merged;
  return {
    label: `${bands.map(([name]) => name).join(', ')} a second over time`,
    durationMs,
    binMs,
    bands: bands.map(([name, levels], index) => ({
      name,
      colour: colour(index),
      levels: perSecond(levels, merged, series),
    })),
    lines: lines.map(([name, levels, look]) => ({
      name,
      look,
      points: perSecond(levels, merged, series).map((level, bin): [number, number] => [
        Math.min(durationMs, (bin + 0.5) * binMs),
        level,
      ]),
    })),
    marks: settled.filter(({ atMs }) => atMs > 0).map(({ after, atMs }) => ({ at: atMs, label: after })),
  };
}

/** The sums of `merged` points each, as a rate. */
function perSecond(levels: readonly number[], merged: number, { everyMs }: Series): number[] {
  const bins: number[] = [];
  for (let from = 0; from < levels.length; from += merged) {
    const part = levels.slice(from, from + merged);
    bins.push((part.reduce((sum, level) => sum + level, 0) / part.length) * (1_000 / everyMs));
  }
  return bins;
}
