import { escapeHtml, figures, htmlTable, renderPage } from '../page/page.js';
import { colour, legend, type TimePlot, timePlot } from '../page/time-plot.js';
import type { ReplayReport } from '../replay/index.js';
import { count, percent } from '../terminal/screen.js';
import { notes, type ReplayOutcome, spanText, TIER_HEAD, tierCells, totals } from './replay-summary.js';

/** The report of a replay as a page that needs nothing but itself. */
export function replayPage(outcome: ReplayOutcome): string {
  const { report, policy, log } = outcome;
  const { requests, admitted, denied, mostDenied, keys } = report;
  const plot = plotOf(report);
  const row = (cells: readonly string[]): string[] => cells.map(escapeHtml);
  return renderPage({
    title: `headgate replay: ${report.policy}`,
    heading: `What policy "${report.policy}" would have done to ${log}`,
    verdict: {
      text: denied === 0 ? 'Nobody would have been denied.' : `${percent(denied / requests)} would have been denied.`,
      good: denied === 0,
    },
    body: [
      `<p class="note">${escapeHtml(spanText(report))}</p>`,
      figures([
        [count(requests), 'requests'],
        [count(admitted), 'admitted'],
        [count(denied), 'denied'],
        [count(keys), 'keys'],
      ]),
      `<h2>Requests per ${unitOf(report).name}, over the time since the first</h2>`,
      timePlot(plot),
      legend(plot),
      '<h2>All requests</h2>',
      htmlTable(['', 'requests', 'of all'], totals(report).map(row)),
      '<h2>Tiers</h2>',
      htmlTable(
        TIER_HEAD,
        report.tiers.map((tier) => row(tierCells(tier, policy))),
      ),
      ...(mostDenied.length === 0
        ? []
        : [
            '<h2>Denied most</h2>',
            htmlTable(
              ['key', 'denied'],
              mostDenied.map(({ key, denied }) => row([key, count(denied)])),
            ),
          ]),
      ...notes(outcome).map((note) => `<p class="note">${escapeHtml(note).replaceAll('\n', '<br>')}</p>`),
      '<h2>The policy</h2>',
      `<pre>${escapeHtml(JSON.stringify(policy, undefined, 2))}</pre>`,
    ],
  });
}

function plotOf(report: ReplayReport): TimePlot {
  const { every, admitted, denied } = report.timeline;
  const unit = unitOf(report);
  const perUnit = (counts: readonly number[]): number[] => counts.map((n) => (n * unit.micros) / every);
  return {
    label: `Requests per ${unit.name} over time, admitted and denied`,
    durationMs: (every / 1_000) * Math.max(1, admitted.length),
    binMs: every / 1_000,
    bands: [
      { name: 'admitted', colour: colour(0), levels: perUnit(admitted) },
      { name: 'denied', colour: colour(3), levels: perUnit(denied) },
    ],
  };
}

/** What rates are counted over so that they are not all below one. */
function unitOf({ timeline }: ReplayReport): { name: string; micros: number } {
  if (timeline.every <= 30_000_000) return { name: 'second', micros: 1_000_000 };
  if (timeline.every <= 1_800_000_000) return { name: 'minute', micros: 60_000_000 };
  return { name: 'hour', micros: 3_600_000_000 };
}
