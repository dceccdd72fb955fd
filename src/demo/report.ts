import { colourOf, ratePlot } from './rate-plot.js';
import { count, duration, percent } from './screen.js';
import type { FleetHistory, Verdict } from './verdict.js';
import { isBroken } from './window-bound.js';

const STYLE = `
  :root { color-scheme: light dark; --ink: #1c2330; --dim: #5d6675; --paper: #ffffff; --line: #dde1e8; --good: #1a7f37; --bad: #c62828; }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e6e9ef; --dim: #9aa3b2; --paper: #14181f; --line: #303743; --good: #57c26b; --bad: #ff6b6b; }
  }
  body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
    font: 16px/1.5 system-ui, sans-serif; }
  h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
  .verdict { font-weight: 600; } .good { color: var(--good); } .bad { color: var(--bad); }
  .figures { display: flex; flex-wrap: wrap; gap: 1rem 2rem; margin: 1.25rem 0; padding: 0; list-style: none; }
  .figures b { display: block; font-size: 1.2rem; } .figures span, p.note { color: var(--dim); font-size: .9rem; }
  svg { width: 100%; height: auto; } .grid { stroke: var(--line); } .tick { fill: var(--dim); font-size: 12px; }
  .ceiling { fill: none; stroke: var(--ink); stroke-width: 2; } .mark { stroke: var(--dim); stroke-dasharray: 4 4; }
  polygon { stroke: var(--paper); stroke-width: .5; }
  .scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
  th, td { padding: .25rem 1.25rem .25rem 0; text-align: right; border-bottom: 1px solid var(--line); }
  th { color: var(--dim); font-weight: 500; } th:first-child, td:first-child { text-align: left; }
  .swatch { display: inline-block; width: .8em; height: .8em; margin-right: .5em; border-radius: 2px; }
`;

/** A page that needs nothing but itself: the verdict, the rate of each instance over time, and the figures behind it. */
export function renderReport(history: FleetHistory, verdict: Verdict): string {
  const { terms, change, instances } = history;
  const seconds = (history.endAt - history.startAt) / 1_000;
  const outcome = verdict.ok ? 'The bound held: no window was above it.' : 'The bound was broken.';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>headgate: ${instances.length} processes under one ceiling</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${instances.length} processes under one ceiling</h1>
<p class="verdict ${verdict.ok ? 'good' : 'bad'}">${outcome}</p>
<p class="note">${count(terms.rate)} tokens a second, burst ${count(terms.burst)}${
    change ? `; from the change on ${count(change.after.rate)} a second, burst ${count(change.after.burst)}` : ''
  }. More than that was asked for during all of ${seconds} s.</p>
${figures(verdict)}
<h2>Admitted a second, by instance, against the ceiling</h2>
${ratePlot(history)}
<p class="note">Areas are stacked: their upper edge is the fleet. The line is the ceiling's rate; above it the fleet may
be for as long as the burst lasts.</p>
<h2>Worst windows</h2>
${windowTable(verdict)}
<h2>Instances</h2>
${instanceTable(history, verdict)}
</body>
</html>
`;
}

function figures({ utilisation, fairness, ceilingCallsPer1000Decisions, decisionNs, decisions }: Verdict): string {
  const items: [string, string][] = [
    [percent(utilisation), 'of what the rate brings'],
    [fairness.toFixed(4), "Jain's index of fairness"],
    [ceilingCallsPer1000Decisions.toFixed(1), 'ceiling calls per 1,000 decisions'],
    [`${duration(decisionNs.p50)} / ${duration(decisionNs.p99)}`, 'p50 / p99 of a decision'],
    [count(decisions), 'decisions'],
  ];
  return `<ul class="figures">${items.map(([value, name]) => `<li><b>${value}</b><span>${name}</span></li>`).join('')}</ul>`;
}

function windowTable({ windows }: Verdict): string {
  const rows = windows.map((window) => {
    const { phase, fromMs, widthMs, admitted, allowed } = window;
    const cells = [
      windows.length === 1 ? 'worst' : `${phase} the change`,
      `${(fromMs / 1_000).toFixed(3)} s`,
      `${(widthMs / 1_000).toFixed(3)} s`,
      count(admitted),
      count(Math.floor(allowed)),
      isBroken(window) ? '<b class="bad">broken</b>' : percent(admitted / allowed),
    ];
    return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
  });
  return `<div class="scroll"><table><tr><th>Window</th><th>From</th><th>Width</th><th>Admitted</th><th>Allowed</th><th>Used</th></tr>${rows.join('')}</table></div>`;
}

function instanceTable({ instances }: FleetHistory, { shares }: Verdict): string {
  const rows = instances.map(({ instance, admissions, absent }) => {
    const share = shares[instance];
    const fate = absent.map(({ to }) => (Number.isFinite(to) ? 'stopped for a while' : 'killed')).join(', ');
    return (
      `<tr><td><i class="swatch" style="background:${colourOf(instance)}"></i>${instance}</td>` +
      `<td>${count(admissions.length)}</td><td>${share === undefined ? '' : percent(share)}</td><td>${fate}</td></tr>`
    );
  });
  return `<div class="scroll"><table><tr><th>Instance</th><th>Admitted</th><th>Of its fair share</th><th></th></tr>${rows.join('')}</table></div>`;
}
