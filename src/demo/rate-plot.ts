import type { Milliseconds } from '../index.js';
import type { FleetHistory } from './verdict.js';

const WIDTH = 960;
const HEIGHT = 380;
const MARGIN = { top: 28, right: 16, bottom: 40, left: 64 };
const PLOT = { width: WIDTH - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
/** Told apart on white and on black; used again from the start where there are more instances. */
const COLOURS = ['#4e79a7', '#f28e2b', '#59a14f', '#e15759', '#2aa198', '#c9a227', '#b07aa1', '#9c755f'];

export function colourOf(instance: number): string {
  return COLOURS[instance % COLOURS.length] as string;
}

/** Admissions a second in each span of time: a row for each instance. */
export function ratesOverTime(history: FleetHistory, binMs: Milliseconds): number[][] {
  const { startAt, endAt, instances } = history;
  const bins = Math.ceil((endAt - startAt) / binMs);
  return instances.map(({ admissions }) => {
    const rates = new Array<number>(bins).fill(0);
    for (const at of admissions) {
      const bin = Math.floor((at - startAt) / binMs);
      if (bin >= 0 && bin < bins) rates[bin] = (rates[bin] ?? 0) + 1_000 / binMs;
    }
    return rates;
  });
}

/** The admitted rate over time as SVG: instances stacked on each other, the ceiling's rate as a line. */
export function ratePlot(history: FleetHistory): string {
  const durationMs = history.endAt - history.startAt;
  const binMs = binWidth(durationMs);
  const rates = ratesOverTime(history, binMs);
  const bins = rates[0]?.length ?? 0;
  const totals = Array.from({ length: bins }, (_, bin) => rates.reduce((sum, row) => sum + (row[bin] ?? 0), 0));
  const highest = Math.max(history.terms.rate, history.change?.after.rate ?? 0, ...totals);
  const step = gridStep(highest);
  const top = Math.ceil(highest / step) * step;
  const x = (ms: Milliseconds): string => (MARGIN.left + (ms / durationMs) * PLOT.width).toFixed(1);
  const y = (rate: number): string => (MARGIN.top + PLOT.height * (1 - rate / top)).toFixed(1);

  const floor = new Array<number>(bins).fill(0);
  const bands = rates.map((row, instance) => {
    const below = [...floor];
    for (const [bin, rate] of row.entries()) floor[bin] = (floor[bin] ?? 0) + rate;
    const edge = (levels: readonly number[]): string[] =>
      levels.flatMap((level, bin) => [
        `${x(bin * binMs)},${y(level)}`,
        `${x(Math.min(durationMs, (bin + 1) * binMs))},${y(level)}`,
      ]);
    const points = [...edge(floor), ...edge(below).reverse()].join(' ');
    return `<polygon points="${points}" fill="${colourOf(instance)}"><title>instance ${instance}</title></polygon>`;
  });
  return [
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Admitted rate over time, by instance, against the ceiling">`,
    ...yAxis(top, step, y),
    ...bands,
    ceilingLine(history, durationMs, x, y),
    ...marks(history, x),
    ...xAxis(durationMs, x),
    '</svg>',
  ].join('\n');
}

function binWidth(durationMs: Milliseconds): Milliseconds {
  return [100, 250, 500, 1_000, 5_000, 10_000].find((width) => durationMs / width <= 80) ?? 30_000;
}

/** A round distance between grid lines that makes four to six of them. */
function gridStep(highest: number): number {
  const magnitude = 10 ** Math.floor(Math.log10(Math.max(1, highest)));
  return ([0.2, 0.5, 1, 2].find((each) => highest / (each * magnitude) <= 6) ?? 2) * magnitude;
}

function yAxis(top: number, step: number, y: (rate: number) => string): string[] {
  const lines = Array.from({ length: Math.round(top / step) + 1 }, (_, i) => step * i);
  return lines.map(
    (rate) =>
      `<line class="grid" x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y(rate)}" y2="${y(rate)}"/>` +
      `<text class="tick" x="${MARGIN.left - 8}" y="${y(rate)}" dy="0.35em" text-anchor="end">${rate.toLocaleString('en-US')}</text>`,
  );
}

function xAxis(durationMs: Milliseconds, x: (ms: Milliseconds) => string): string[] {
  const seconds = durationMs / 1_000;
  const step = [1, 2, 5, 10, 30, 60, 120].find((each) => seconds / each <= 12) ?? 300;
  const ticks = Array.from({ length: Math.floor(seconds / step) + 1 }, (_, i) => i * step);
  return ticks.map(
    (second) =>
      `<text class="tick" x="${x(second * 1_000)}" y="${HEIGHT - 16}" text-anchor="middle">${second} s</text>`,
  );
}

function ceilingLine(
  { terms, change, startAt }: FleetHistory,
  durationMs: Milliseconds,
  x: (ms: Milliseconds) => string,
  y: (rate: number) => string,
): string {
  const changedAt = change ? change.until - startAt : durationMs;
  const points = [`${x(0)},${y(terms.rate)}`, `${x(changedAt)},${y(terms.rate)}`];
  if (change) points.push(`${x(changedAt)},${y(change.after.rate)}`, `${x(durationMs)},${y(change.after.rate)}`);
  return `<polyline class="ceiling" points="${points.join(' ')}"><title>the ceiling's rate</title></polyline>`;
}

/** What happened to the fleet, as upright lines with a word on top. */
function marks({ change, instances, startAt }: FleetHistory, x: (ms: Milliseconds) => string): string[] {
  const moments = instances.flatMap(({ instance, absent }) =>
    absent.map(({ from, to }) => ({
      at: from - startAt,
      label: `instance ${instance} ${Number.isFinite(to) ? 'stopped' : 'killed'}`,
    })),
  );
  if (change) moments.push({ at: change.until - startAt, label: 'policy tightened' });
  return moments.map(
    ({ at, label }) =>
      `<line class="mark" x1="${x(at)}" x2="${x(at)}" y1="${MARGIN.top}" y2="${HEIGHT - MARGIN.bottom}"/>` +
      `<text class="tick" x="${x(at)}" y="${MARGIN.top - 8}" text-anchor="middle">${label}</text>`,
  );
}
