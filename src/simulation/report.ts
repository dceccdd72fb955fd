import { MICRO, type Milliseconds, type Tokens } from '../units.js';
import type { BucketWatch } from './bucket-watch.js';
import { type Fairness, fairness } from './fairness.js';
import type { Instance, World } from './instance.js';
import type { Plan } from './parse-scenario.js';
import type { GroupTally, Recorder, Series } from './recorder.js';

/** What one bucket let through, all instances together, after the warm-up. */
export interface BucketReport {
  readonly policy: string;
  readonly key: string;
  readonly offered: Tokens;
  readonly admitted: Tokens;
  /** Admitted ÷ what could have been: the smaller of R × time and what was offered. `undefined` without a token bucket as ceiling. */
  readonly utilisation: number | undefined;
  /** Admitted ÷ what one exact bucket without any delay admitted of the same calls. */
  readonly ofIdeal: number;
  /** Calls denied that the ideal let pass, as a part of all. */
  readonly falseDenials: number;
  /** Tokens by which the worst window of the whole run was above B + R·w; 0 or less: none was. */
  readonly worstWindow: Tokens | undefined;
  /** Admissions that ended a window above it. */
  readonly windowsOver: number;
  /** Of the instances that asked for it, held against their max-min shares. */
  readonly fairness: Fairness | undefined;
}

/** How a fleet did. Tokens and calls are counted after the warm-up, windows over the whole run. */
export interface Report {
  readonly seed: number;
  readonly durationMs: Milliseconds;
  readonly measuredMs: Milliseconds;
  /** Over all buckets: the worst window and how many admissions were in one over its bound. */
  readonly worstWindow: Tokens | undefined;
  readonly windowsOver: number;
  /** The buckets with a key of their own in the scenario, in its order. */
  readonly buckets: readonly BucketReport[];
  /** The others, those of a range of keys, added up: how many, and what they let through. */
  readonly others: { readonly buckets: number; readonly ofIdeal: number; readonly falseDenials: number };
  readonly groups: readonly GroupTally[];
  readonly store: {
    readonly calls: number;
    readonly callsPerSecond: number;
    readonly callsPerInstanceSecond: number;
    readonly callsPerToken: number;
    /** Lease calls ÷ calls of the limiters that were decided. */
    readonly callsPerDecision: number;
    /** Messages: all calls of an instance in one tick travel as one. */
    readonly roundTrips: number;
    /** Most messages of one instance at one moment. */
    readonly mostTripsATick: number;
    readonly failures: number;
    readonly refusals: number;
  };
  /** Leased and never spent: ended in a wallet or with a process. Over the whole run. */
  readonly stranded: Tokens;
  /** Out on live leases when the run ended, spent or not. */
  readonly outstanding: Tokens;
  /** After the start, each event and each change of traffic: when the fleet admitted 97 % of the ideal over a second. */
  readonly settled: readonly {
    readonly after: string;
    readonly atMs: Milliseconds;
    readonly inMs: Milliseconds | undefined;
  }[];
  readonly series: Series;
}

/** Over what span, and at what part of the ideal, a fleet counts as settled. */
const SETTLED_OVER_MS: Milliseconds = 1_000;
const SETTLED_AT = 0.97;

/** Makes a report of what has been recorded. */
export function reportOf({ plan, recorder, server }: World, instances: readonly Instance[]): Report {
  const measuredMs = plan.durationMs - plan.warmUpMs;
  const rows = instances.flatMap((instance) => instance.stats());
  const sum = (of: (row: (typeof rows)[number]) => number): number => rows.reduce((total, row) => total + of(row), 0);
  const named = [...recorder.shares.keys()].map((bucket) => bucketReport(bucket, recorder, plan));
  const all = [...recorder.buckets];
  const others = all.filter((bucket) => !recorder.shares.has(bucket));
  const admitted = all.reduce((total, bucket) => total + bucket.admitted, 0);
  const decisions = recorder.groups.reduce((calls, group) => calls + group.calls, 0);
  const perSecond = recorder.storeCalls / (measuredMs / 1_000);
  return {
    seed: plan.seed,
    durationMs: plan.durationMs,
    measuredMs,
    worstWindow: worstOf(all),
    windowsOver: all.reduce((total, bucket) => total + bucket.over, 0),
    buckets: named,
    others: {
      buckets: others.length,
      ofIdeal: ratio(total(others, 'admitted'), total(others, 'ideal')),
      falseDenials: ratio(total(others, 'falselyDenied'), decisions),
    },
    groups: recorder.groups,
    store: {
      calls: recorder.storeCalls,
      callsPerSecond: perSecond,
      callsPerInstanceSecond: perSecond / instances.length,
      callsPerToken: ratio(recorder.storeCalls, admitted),
      callsPerDecision: ratio(recorder.storeCalls, decisions),
      roundTrips: recorder.roundTrips,
      mostTripsATick: recorder.mostTripsATick,
      failures: recorder.failures + sum((row) => row.leaseFailures),
      refusals: recorder.refusals + sum((row) => row.leaseRefusals),
    },
    stranded: recorder.stranded + sum((row) => row.tokensExpired),
    outstanding: all.reduce((total, { policy, key }) => total + server.outstanding(policy, key), 0) / MICRO,
    settled: marksOf(plan).map(({ after, atMs }) => ({ after, atMs, inMs: settledIn(recorder.series, atMs) })),
    series: recorder.series,
  };
}

function bucketReport(bucket: BucketWatch, recorder: Recorder, plan: Plan): BucketReport {
  const { policy, key, offered, admitted } = bucket;
  const capacity = bucket.refillBetween(plan.warmUpMs, plan.durationMs);
  const shares = [...(recorder.shares.get(bucket)?.values() ?? [])];
  const calls = shares.reduce((total, { calls }) => total + calls, 0);
  return {
    policy,
    key,
    offered,
    admitted,
    utilisation: bucket.bounded ? ratio(admitted, Math.min(capacity, offered)) : undefined,
    ofIdeal: ratio(admitted, bucket.ideal),
    falseDenials: calls === 0 ? 0 : bucket.falselyDenied / calls,
    worstWindow: worstOf([bucket]),
    windowsOver: bucket.over,
    fairness: fairness(shares, capacity),
  };
}

/** Moments from which on it is of interest how long the fleet takes to settle. */
function marksOf(plan: Plan): { after: string; atMs: Milliseconds }[] {
  const marks = [{ after: 'start', atMs: 0 }];
  for (const event of plan.events) marks.push({ after: event.kind, atMs: event.endsAtMs });
  for (const { name, traffic } of plan.groups) {
    for (const { fromMs, untilMs } of traffic) {
      if (fromMs > 0) marks.push({ after: `traffic of ${name} began`, atMs: fromMs });
      if (untilMs < plan.durationMs) marks.push({ after: `traffic of ${name} ended`, atMs: untilMs });
    }
  }
  return marks.sort((a, b) => a.atMs - b.atMs);
}

/** How long after `atMs` the first span begins in which the fleet did as well as it should; `undefined`: never. */
function settledIn({ everyMs, admitted, ideal }: Series, atMs: Milliseconds): Milliseconds | undefined {
  const span = Math.max(1, Math.round(SETTLED_OVER_MS / everyMs));
  for (let point = Math.ceil(atMs / everyMs); point + span <= admitted.length; point++) {
    let got = 0;
    let possible = 0;
    for (let i = point; i < point + span; i++) {
      got += admitted[i] ?? 0;
      possible += ideal[i] ?? 0;
    }
    if (got >= SETTLED_AT * possible) return point * everyMs - atMs;
  }
  return undefined;
}

function worstOf(buckets: readonly BucketWatch[]): Tokens | undefined {
  const bounded = buckets.filter((bucket) => bucket.bounded);
  if (bounded.length === 0) return undefined;
  return bounded.reduce((worst, bucket) => Math.max(worst, bucket.worst), Number.NEGATIVE_INFINITY);
}

function total(buckets: readonly BucketWatch[], of: 'admitted' | 'ideal' | 'falselyDenied'): number {
  return buckets.reduce((sum, bucket) => sum + bucket[of], 0);
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
