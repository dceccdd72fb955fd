import type { Milliseconds, Tokens } from '../index.js';
import { type CeilingTerms, isBroken, type TermsChange, type WorstWindow, worstWindows } from './window-bound.js';

/** What one instance did. */
export interface InstanceHistory {
  readonly instance: number;
  /** When each of its admissions was decided, ascending, on the host's clock. */
  readonly admissions: Float64Array;
  /** When it could not ask for anything: after its death, or while it was stopped. */
  readonly absent: readonly { readonly from: Milliseconds; readonly to: Milliseconds }[];
}

/** All that a verdict is made from. */
export interface FleetHistory {
  readonly startAt: Milliseconds;
  readonly endAt: Milliseconds;
  readonly terms: CeilingTerms;
  readonly change: TermsChange | undefined;
  readonly instances: readonly InstanceHistory[];
  readonly decisions: number;
  readonly leaseCalls: number;
  readonly decisionNs: { readonly p50: number; readonly p99: number };
}

export interface Verdict {
  /** Whether no window was above its bound. */
  readonly ok: boolean;
  readonly windows: readonly WorstWindow[];
  readonly admitted: Tokens;
  readonly decisions: number;
  /** Admitted, of what the rates in force allow, once the first burst is spent. */
  readonly utilisation: number;
  /** Jain's index over the instances' shares, each relative to its max-min fair one: 1 is perfectly fair. */
  readonly fairness: number;
  readonly ceilingCallsPer1000Decisions: number;
  readonly decisionNs: { readonly p50: number; readonly p99: number };
  /** Admitted by each instance while utilisation was measured, relative to its fair share. */
  readonly shares: readonly number[];
  /** From when utilisation and fairness are measured. */
  readonly measuredFromMs: Milliseconds;
}

/** Makes a verdict; times in it count from the start. Every instance is taken to ask for more than its share. */
export function judge(history: FleetHistory): Verdict {
  const { startAt, endAt, terms, instances } = history;
  const change = history.change && shifted(history.change, startAt);
  const times = merged(instances, startAt);
  const windows = worstWindows(times, terms, change);
  const from = Math.min(2_000, (endAt - startAt) / 5);
  const until = endAt - startAt;
  const shares = fairShares(history, change, from, until);
  const measured = times.filter((at) => at >= from && at < until).length;
  return {
    ok: !windows.some(isBroken),
    windows,
    admitted: times.length,
    decisions: history.decisions,
    utilisation: measured / capacity(terms, change, from, until),
    fairness: jain(shares),
    ceilingCallsPer1000Decisions: history.decisions === 0 ? 0 : (history.leaseCalls / history.decisions) * 1_000,
    decisionNs: history.decisionNs,
    shares,
    measuredFromMs: from,
  };
}

/** Jain's index: 1 where all are equal, 1/n where one has everything. */
export function jain(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0);
  const squares = shares.reduce((total, share) => total + share * share, 0);
  return squares === 0 ? 1 : sum ** 2 / (shares.length * squares);
}

function merged(instances: readonly InstanceHistory[], startAt: Milliseconds): Float64Array {
  const all = new Float64Array(instances.reduce((total, { admissions }) => total + admissions.length, 0));
  let offset = 0;
  for (const { admissions } of instances) {
    all.set(
      admissions.map((at) => at - startAt),
      offset,
    );
    offset += admissions.length;
  }
  return all.sort();
}

function shifted(change: TermsChange, by: Milliseconds): TermsChange {
  return { ...change, from: change.from - by, until: change.until - by, settledAt: change.settledAt - by };
}

/** Tokens that the rates in force bring between two moments. */
function capacity(terms: CeilingTerms, change: TermsChange | undefined, from: Milliseconds, to: Milliseconds): Tokens {
  const changedAt = Math.min(Math.max(change?.until ?? to, from), to);
  return (terms.rate * (changedAt - from) + (change?.after.rate ?? 0) * (to - changedAt)) / 1_000;
}

/** What each instance was admitted, over what max-min fairness gives it: an equal part with all who were there. */
function fairShares(
  { startAt, terms, instances }: FleetHistory,
  change: TermsChange | undefined,
  from: Milliseconds,
  to: Milliseconds,
): number[] {
  const absences = instances.map(({ absent }) =>
    absent.map((span) => ({ from: span.from - startAt, to: span.to - startAt })),
  );
  const isThere = (instance: number, at: Milliseconds): boolean =>
    !absences[instance]?.some((span) => at >= span.from && at < span.to);
  const borders = [from, to, ...absences.flat().flatMap((span) => [span.from, span.to])]
    .filter((at) => at >= from && at <= to)
    .sort((a, b) => a - b);
  const fair = instances.map(() => 0);
  for (const [index, end] of borders.entries()) {
    const begin = borders[index - 1];
    if (begin === undefined || end <= begin) continue;
    const there = instances.map((_, instance) => instance).filter((instance) => isThere(instance, begin));
    const each = capacity(terms, change, begin, end) / there.length;
    for (const instance of there) fair[instance] = (fair[instance] ?? 0) + each;
  }
  return instances.flatMap(({ admissions }, instance) => {
    const share = fair[instance] ?? 0;
    const got = admissions.filter((at) => at - startAt >= from && at - startAt < to).length;
    return share > 0 ? [got / share] : [];
  });
}
