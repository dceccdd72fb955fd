import type { Milliseconds } from '../index.js';
import { colour, type Line, type TimePlot } from '../page/time-plot.js';
import type { FleetHistory } from './verdict.js';

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

/** The admitted rate over time: instances stacked on each other, the ceiling's rate as a line. */
export function ratePlot(history: FleetHistory): TimePlot {
  const durationMs = history.endAt - history.startAt;
  const binMs = binWidth(durationMs);
  return {
    label: 'Admitted rate over time, by instance, against the ceiling',
    durationMs,
    binMs,
    bands: ratesOverTime(history, binMs).map((levels, instance) => ({
      name: `instance ${instance}`,
      colour: colour(instance),
      levels,
    })),
    lines: [ceilingLine(history, durationMs)],
    marks: marks(history),
  };
}

function binWidth(durationMs: Milliseconds): Milliseconds {
  return [100, 250, 500, 1_000, 5_000, 10_000].find((width) => durationMs / width <= 80) ?? 30_000;
}

function ceilingLine({ terms, change, startAt }: FleetHistory, durationMs: Milliseconds): Line {
  const changedAt = change ? change.until - startAt : durationMs;
  const points: [Milliseconds, number][] = [
    [0, terms.rate],
    [changedAt, terms.rate],
  ];
  if (change) points.push([changedAt, change.after.rate], [durationMs, change.after.rate]);
  return { name: "the ceiling's rate", points, look: 'ceiling' };
}

function marks({ change, instances, startAt }: FleetHistory): { at: Milliseconds; label: string }[] {
  const moments = instances.flatMap(({ instance, absent }) =>
    absent.map(({ from, to }) => ({
      at: from - startAt,
      label: `instance ${instance} ${Number.isFinite(to) ? 'stopped' : 'killed'}`,
    })),
  );
  if (change) moments.push({ at: change.until - startAt, label: 'policy tightened' });
  return moments;
}
