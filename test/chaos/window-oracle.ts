import type { Milliseconds, Tokens } from '../../src/index.js';

/** One admission, at the clock reading its decision used. */
export interface Admission {
  readonly at: Milliseconds;
  readonly cost: Tokens;
  readonly key: number;
}

/** A claim about windows of time: those that begin and end in the given spans admit at most burst + rate × length + extra. */
export interface WindowRule {
  readonly what: string;
  readonly ratePerSecond: number;
  readonly burst: Tokens;
  /** What the design allows on top. Default 0. */
  readonly extra?: Tokens;
  readonly beginsFrom?: Milliseconds;
  readonly beginsBefore?: Milliseconds;
  readonly endsBefore?: Milliseconds;
  /** Only admissions of this key. Default: each key for itself. */
  readonly key?: number;
  /** From when on rate and burst are another multiple of these, in the order of time; the burst for windows begun then. */
  readonly changes?: readonly { readonly from: Milliseconds; readonly factor: number }[];
}

/** The worst window a rule was asked about. */
export interface WorstWindow {
  /** Tokens admitted beyond burst + rate × length; negative where the bound was never reached. */
  readonly excess: Tokens;
  readonly from: Milliseconds;
  readonly to: Milliseconds;
  readonly admitted: Tokens;
}

/** Both bounds are exact; this only absorbs that a double of micro-tokens is not. */
export const ROUNDING: Tokens = 1e-6;

/**
 * The window, of all those that a rule speaks of, in which most was admitted beyond burst + rate × length. A window that
 * is worst begins and ends with an admission, so that one pass over them finds it: S(b) − R·b is compared with the least
 * S(a) − R·a + B before it, S being what was admitted before a, and up to b. R·t is the integral of the rate, and B the
 * burst at a.
 */
export function worstWindow(admissions: readonly Admission[], rule: WindowRule): WorstWindow {
  const keys = rule.key === undefined ? new Set(admissions.map(({ key }) => key)) : [rule.key];
  let worst: WorstWindow = { excess: -rule.burst, from: 0, to: 0, admitted: 0 };
  for (const key of keys) {
    const found = worstOfKey(
      admissions.filter((admission) => admission.key === key),
      rule,
    );
    if (found.excess > worst.excess) worst = found;
  }
  return worst;
}

function worstOfKey(admissions: readonly Admission[], rule: WindowRule): WorstWindow {
  const { burst, beginsFrom = -Infinity, beginsBefore = Infinity, endsBefore = Infinity, changes = [] } = rule;
  const origin = admissions[0]?.at ?? 0;
  const burstAt = (at: Milliseconds): Tokens => burst * (changes.findLast(({ from }) => at >= from)?.factor ?? 1);
  const earned = (at: Milliseconds): Tokens => earnedBetween(origin, at, rule);
  let total = 0;
  let least = Infinity;
  let begin: { at: Milliseconds; total: Tokens } = { at: origin, total: 0 };
  let worst: WorstWindow = { excess: -burst, from: origin, to: origin, admitted: 0 };
  for (const { at, cost } of admissions) {
    const here = total - earned(at) + burstAt(at);
    if (at >= beginsFrom && at < beginsBefore && here < least) {
      least = here;
      begin = { at, total };
    }
    total += cost;
    const excess = total - earned(at) - least;
    if (at < endsBefore && excess > worst.excess) {
      worst = { excess, from: begin.at, to: at, admitted: total - begin.total };
    }
  }
  return worst;
}

function earnedBetween(from: Milliseconds, to: Milliseconds, { ratePerSecond, changes = [] }: WindowRule): Tokens {
  let ms = to - from;
  let factor = 1;
  for (const change of changes) {
    ms += Math.max(0, to - Math.max(from, change.from)) * (change.factor - factor);
    factor = change.factor;
  }
  return (ms * ratePerSecond) / 1_000;
}

/**
 * How long after `from` the fleet was back at `fraction` of the rate: until the first window of `lengthMs` in which it
 * admitted as much. Undefined where none has been seen yet.
 */
export function backAfter(
  admissions: readonly Admission[],
  from: Milliseconds,
  { ratePerSecond, lengthMs, fraction = 0.95 }: { ratePerSecond: number; lengthMs: Milliseconds; fraction?: number },
): Milliseconds | undefined {
  const enough = (fraction * ratePerSecond * lengthMs) / 1_000;
  const times = admissions.filter(({ at }) => at >= from);
  let end = 0;
  let inside = 0;
  for (const [begin, { at, cost }] of times.entries()) {
    // The first window begins with the recovery itself, each later one with an admission.
    const opens = begin === 0 ? from : at;
    for (; end < times.length && (times[end] as Admission).at < opens + lengthMs; end++) {
      inside += (times[end] as Admission).cost;
    }
    if (inside >= enough) return opens - from;
    inside -= cost;
  }
  return undefined;
}
