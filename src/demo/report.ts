import { figures, htmlTable, renderPage } from '../page/page.js';
import { colour, swatch, timePlot } from '../page/time-plot.js';
import { count, duration, percent } from '../terminal/screen.js';
import { ratePlot } from './rate-plot.js';
import type { FleetHistory, Verdict } from './verdict.js';
import { isBroken } from './window-bound.js';

/** A page that needs nothing but itself: the verdict, the rate of each instance over time, and the figures behind it. */
export function renderReport(history: FleetHistory, verdict: Verdict): string {
  const { terms, change, instances } = history;
  const seconds = (history.endAt - history.startAt) / 1_000;
  const heading = `${instances.length} processes under one ceiling`;
  return renderPage({
    title: `headgate: ${heading}`,
    heading,
    verdict: {
      text: verdict.ok ? 'The bound held: no window was above it.' : 'The bound was broken.',
      good: verdict.ok,
    },
    body: [
      `<p class="note">${count(terms.rate)} tokens a second, burst ${count(terms.burst)}${
        change ? `; from the change on ${count(change.after.rate)} a second, burst ${count(change.after.burst)}` : ''
      }. More than that was asked for during all of ${seconds} s.</p>`,
      verdictFigures(verdict),
      '<h2>Admitted a second, by instance, against the ceiling</h2>',
      timePlot(ratePlot(history)),
      `<p class="note">Areas are stacked: their upper edge is the fleet. The line is the ceiling's rate; above it the fleet may
be for as long as the burst lasts.</p>`,
      '<h2>Worst windows</h2>',
      windowTable(verdict),
      '<h2>Instances</h2>',
      instanceTable(history, verdict),
    ],
  });
}

function verdictFigures(verdict: Verdict): string {
  const { utilisation, fairness, ceilingCallsPer1000Decisions, decisionNs, decisions } = verdict;
  return figures([
    [percent(utilisation), 'of what the rate brings'],
    [fairness.toFixed(4), "Jain's index of fairness"],
    [ceilingCallsPer1000Decisions.toFixed(1), 'ceiling calls per 1,000 decisions'],
    [`${duration(decisionNs.p50)} / ${duration(decisionNs.p99)}`, 'p50 / p99 of a decision'],
    [count(decisions), 'decisions'],
  ]);
}

function windowTable({ windows }: Verdict): string {
  const rows = windows.map((window) => {
    const { phase, fromMs, widthMs, admitted, allowed } = window;
    return [
      windows.length === 1 ? 'worst' : `${phase} the change`,
      `${(fromMs / 1_000).toFixed(3)} s`,
      `${(widthMs / 1_000).toFixed(3)} s`,
      count(admitted),
      count(Math.floor(allowed)),
      isBroken(window) ? '<b class="bad">broken</b>' : percent(admitted / allowed),
    ];
  });
  return htmlTable(['Window', 'From', 'Width', 'Admitted', 'Allowed', 'Used'], rows);
}

function instanceTable({ instances }: FleetHistory, { shares }: Verdict): string {
  const rows = instances.map(({ instance, admissions, absent }) => {
    const share = shares[instance];
    const fate = absent.map(({ to }) => (Number.isFinite(to) ? 'stopped for a while' : 'killed')).join(', ');
    return [
      `${swatch(colour(instance))}${instance}`,
      count(admissions.length),
      share === undefined ? '' : percent(share),
      fate,
    ];
  });
  return htmlTable(['Instance', 'Admitted', 'Of its fair share', ''], rows);
}
