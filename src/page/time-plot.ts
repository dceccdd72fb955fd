import type { Milliseconds } from '../units.js';
import { escapeHtml } from './page.js';

/** Something that has a level at each moment. */
export interface Line {
  readonly name: string;
  /** Moments and levels, in order of time. */
  readonly points: readonly (readonly [at: Milliseconds, level: number])[];
  readonly look: 'ceiling' | 'dashed';
}

/** A part of the whole over time, drawn as an area on top of those before it. */
export interface Band {
  readonly name: string;
  readonly colour: string;
  /** The level in each span of `binMs`. */
  readonly levels: readonly number[];
}

/** What {@link timePlot} draws. Times count from the left edge. */
export interface TimePlot {
  /** What is to be seen, for those who can't see it. */
  readonly label: string;
  readonly durationMs: Milliseconds;
  readonly binMs: Milliseconds;
  readonly bands: readonly Band[];
  readonly lines?: readonly Line[];
  /** What happened on the way: upright lines with a word on top. */
  readonly marks?: readonly { readonly at: Milliseconds; readonly label: string }[];
}

const WIDTH = 960;
const HEIGHT = 380;
const MARGIN = { top: 28, right: 16, bottom: 40, left: 64 };
const PLOT = { width: WIDTH - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
/** Told apart on white and on black; used again from the start where there are more. */
const COLOURS = ['#4e79a7', '#f28e2b', '#59a14f', '#e15759', '#2aa198', '#c9a227', '#b07aa1', '#9c755f'];
/** Steps between ticks of the time axis, and the unit they are shown in. */
const SECOND: Milliseconds = 1_000;
const AXES = [
  { unit: 's', ms: SECOND, steps: [1, 2, 5, 10, 30] },
  { unit: 'min', ms: 60 * SECOND, steps: [1, 2, 5, 10, 30] },
  { unit: 'h', ms: 3_600 * SECOND, steps: [1, 2, 4, 12] },
  { unit: 'd', ms: 86_400 * SECOND, steps: [1, 2, 7, 30, 90, 365] },
];
const MOST_TICKS = 12;

type Scale = (value: number) => string;

export function colour(index: number): string {
  return COLOURS[index % COLOURS.length] as string;
}

/** Levels over time as SVG: bands stacked on each other, lines over them. */
export function timePlot(plot: TimePlot): string {
  const { durationMs, binMs, bands, lines = [], marks = [] } = plot;
  const bins = Math.max(0, ...bands.map(({ levels }) => levels.length));
  const totals = Array.from({ length: bins }, (_, bin) =>
    bands.reduce((sum, { levels }) => sum + (levels[bin] ?? 0), 0),
  );
  const onLines = lines.flatMap(({ points }) => points.map(([, level]) => level));
  const highest = [...totals, ...onLines].reduce((most, level) => Math.max(most, level), 0);
  const step = gridStep(highest);
  const top = Math.max(step, Math.ceil(highest / step) * step);
  const x: Scale = (ms) => (MARGIN.left + (ms / durationMs) * PLOT.width).toFixed(1);
  const y: Scale = (level) => (MARGIN.top + PLOT.height * (1 - level / top)).toFixed(1);

  const floor = new Array<number>(bins).fill(0);
  const areas = bands.map(({ name, colour, levels }) => {
    const below = [...floor];
    for (const [bin, level] of levels.entries()) floor[bin] = (floor[bin] ?? 0) + level;
    const edge = (levels: readonly number[]): string[] =>
      levels.flatMap((level, bin) => [
        `${x(bin * binMs)},${y(level)}`,
        `${x(Math.min(durationMs, (bin + 1) * binMs))},${y(level)}`,
      ]);
    const points = [...edge(floor), ...edge(below).reverse()].join(' ');
    return `<polygon points="${points}" fill="${colour}"><title>${escapeHtml(name)}</title></polygon>`;
  });
  return [
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(plot.label)}">`,
    ...yAxis(top, step, y),
    ...areas,
    ...lines.map(({ name, points, look }) => {
      const path = points.map(([at, level]) => `${x(at)},${y(level)}`).join(' ');
      return `<polyline class="${look}" points="${path}"><title>${escapeHtml(name)}</title></polyline>`;
    }),
    ...marks.map(
      ({ at, label }) =>
        `<line class="mark" x1="${x(at)}" x2="${x(at)}" y1="${MARGIN.top}" y2="${HEIGHT - MARGIN.bottom}"/>` +
        `<text class="tick" x="${x(at)}" y="${MARGIN.top - 8}" text-anchor="middle">${escapeHtml(label)}</text>`,
    ),
    ...xAxis(durationMs, x),
    '</svg>',
  ].join('\n');
}

/** The names of bands and lines, as a line of text with their colours. */
export function legend({ bands, lines = [] }: TimePlot): string {
  const items = [
    ...bands.map(({ name, colour }) => `${swatch(colour)}${escapeHtml(name)}`),
    ...lines.map(({ name, look }) => `<i class="stroke ${look}"></i>${escapeHtml(name)}`),
  ];
  return `<p class="legend">${items.map((item) => `<span>${item}</span>`).join(' ')}</p>`;
}

export function swatch(colour: string): string {
  return `<i class="swatch" style="background:${colour}"></i>`;
}

/** A round distance between grid lines that makes four to six of them. */
function gridStep(highest: number): number {
  const magnitude = 10 ** Math.floor(Math.log10(Math.max(1, highest)));
  return ([0.2, 0.5, 1, 2].find((each) => highest / (each * magnitude) <= 6) ?? 2) * magnitude;
}

function yAxis(top: number, step: number, y: Scale): string[] {
  const levels = Array.from({ length: Math.round(top / step) + 1 }, (_, i) => step * i);
  return levels.map(
    (level) =>
      `<line class="grid" x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${y(level)}" y2="${y(level)}"/>` +
      `<text class="tick" x="${MARGIN.left - 8}" y="${y(level)}" dy="0.35em" text-anchor="end">${level.toLocaleString('en-US')}</text>`,
  );
}

function xAxis(durationMs: Milliseconds, x: Scale): string[] {
  const choices = AXES.flatMap(({ unit, ms, steps }) => steps.map((step) => ({ unit, ms, step })));
  const axis = choices.find(({ ms, step }) => durationMs / (ms * step) <= MOST_TICKS) ?? choices.at(-1);
  if (!axis) return [];
  const { unit, ms, step } = axis;
  return Array.from({ length: Math.floor(durationMs / (ms * step)) + 1 }, (_, i) => i * step).map(
    (tick) => `<text class="tick" x="${x(tick * ms)}" y="${HEIGHT - 16}" text-anchor="middle">${tick} ${unit}</text>`,
  );
}
