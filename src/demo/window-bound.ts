import type { Milliseconds, Tokens } from '../index.js';

/** A ceiling: tokens a second, and most at once. */
export interface CeilingTerms {
  readonly rate: number;
  readonly burst: Tokens;
}

/** A change of terms, as exactly as its moment is known. `docs/design.md`, "Policies", has the bounds. */
export interface TermsChange {
  readonly after: CeilingTerms;
  /** The fence moved no earlier than this. */
  readonly from: Milliseconds;
  /** The bucket was under the new terms no later than this. */
  readonly until: Milliseconds;
  /** Most tokens that were outstanding at that moment. */
  readonly outstanding: Tokens;
  /** From here on whatever was outstanding beyond the new burst has been paid off. */
  readonly settledAt: Milliseconds;
}

export type Phase = 'before' | 'across' | 'after';

/** The window of a phase that came closest to its bound, or went furthest beyond it. */
export interface WorstWindow {
  readonly phase: Phase;
  readonly admitted: Tokens;
  readonly widthMs: Milliseconds;
  /** The most that may be admitted in this window. */
  readonly allowed: number;
  /** `allowed` − `admitted`: below zero where the bound is broken. */
  readonly headroom: number;
  readonly fromMs: Milliseconds;
}

/** Sums of doubles that should cancel out may miss it by this. */
const ROUNDING = 1e-6;

export function isBroken(window: Pick<WorstWindow, 'headroom'>): boolean {
  return window.headroom < -ROUNDING;
}

/** A bound that is a sum of a part for the start of a window and one for its end, and the windows it holds for. */
interface Bound {
  readonly phase: Phase;
  readonly startsIn: (at: Milliseconds) => boolean;
  readonly endsIn: (at: Milliseconds) => boolean;
  readonly ofStart: (at: Milliseconds) => number;
  readonly ofEnd: (at: Milliseconds) => number;
}

/**
 * Looks at every window that begins and ends with an admission (no other can be worse), in one pass for each phase.
 *
 * @param times of all admissions of one token each, ascending, in ms
 */
export function worstWindows(times: Float64Array, before: CeilingTerms, change?: TermsChange): WorstWindow[] {
  const bounds = change ? boundsAcross(before, change) : [plainBound('before', before)];
  return bounds.flatMap((bound) => worstWindow(times, bound) ?? []);
}

function plainBound(phase: Phase, { rate, burst }: CeilingTerms): Bound {
  const everywhere = (): boolean => true;
  return {
    phase,
    startsIn: everywhere,
    endsIn: everywhere,
    ofStart: (a) => burst - (rate * a) / 1_000,
    ofEnd: (b) => (rate * b) / 1_000,
  };
}

function boundsAcross(before: CeilingTerms, change: TermsChange): Bound[] {
  const { after, from, until, settledAt } = change;
  const beyond = Math.max(0, change.outstanding - after.burst);
  return [
    { ...plainBound('before', before), endsIn: (b) => b <= from },
    {
      phase: 'across',
      startsIn: (a) => a < until,
      endsIn: (b) => b > from,
      ofStart: (a) => before.burst + (before.rate * (until - a)) / 1_000,
      ofEnd: (b) => (after.rate * (b - from)) / 1_000,
    },
    {
      ...plainBound('after', after),
      startsIn: (a) => a >= until,
      ofEnd: (b) => (after.rate * b) / 1_000 + (b < settledAt ? beyond : 0),
    },
  ];
}

function worstWindow(times: Float64Array, bound: Bound): WorstWindow | undefined {
  let worst: WorstWindow | undefined;
  // The start that leaves the least: bound's part for it, plus what was admitted before it.
  let least = Number.POSITIVE_INFINITY;
  let leastAt = 0;
  let leastIndex = 0;
  for (const [index, at] of times.entries()) {
    if (bound.startsIn(at)) {
      const left = bound.ofStart(at) + index;
      if (left < least) {
        least = left;
        leastAt = at;
        leastIndex = index;
      }
    }
    if (least === Number.POSITIVE_INFINITY || !bound.endsIn(at)) continue;
    const headroom = least + bound.ofEnd(at) - (index + 1);
    if (worst && headroom >= worst.headroom) continue;
    const admitted = index + 1 - leastIndex;
    worst = {
      phase: bound.phase,
      admitted,
      widthMs: at - leastAt,
      allowed: admitted + headroom,
      headroom,
      fromMs: leastAt,
    };
  }
  return worst;
}
