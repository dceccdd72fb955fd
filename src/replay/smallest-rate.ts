import { MICRO, type Microseconds, type MicroTokens, type Tokens } from '../units.js';

/** One key's requests so far, as a line of corners: when a window may begin, and what had come before it. */
export interface RateHull {
  /** Corners in order of time. */
  readonly at: Microseconds[];
  readonly before: MicroTokens[];
  total: MicroTokens;
  lastAt: Microseconds;
}

/** Corners kept of one key. */
const MOST_CORNERS = 64;

/**
 * The smallest rate with which buckets of a given burst B would have denied nobody: the largest (n − B) ÷ w over all
 * windows, of length w and with n tokens in them, of any key.
 *
 * Of a key, the beginnings of windows that can still matter are the corners of the lower convex hull of "time, tokens
 * that had come before": the steepest line from a later moment down to the hull touches a corner. Corners up to which
 * the hull is no steeper than the largest rate found so far, for whatever key, are dropped: no window that begins there
 * can ask for more. That leaves a handful. Where a key has more than 64 all the same, the hull is widened downwards
 * where that adds least; then the rate may come out a little above the smallest, and never below it.
 *
 * A full bucket gains nothing before the next whole microsecond (rule 12 of the ledger), so windows are counted from
 * there on.
 */
export class SmallestRate {
  /** Tokens a second; Infinity where more than the burst came at one moment. */
  #best = 0;
  readonly #burst: MicroTokens;
  readonly #mostCorners: number;
  /** Whether a hull had to be widened. */
  widened = false;

  constructor(burst: MicroTokens, mostCorners = MOST_CORNERS) {
    this.#burst = burst;
    this.#mostCorners = mostCorners;
  }

  /** In tokens a second; Infinity where no rate is enough. */
  get perSecond(): number {
    return this.#best;
  }

  newHull(): RateHull {
    return { at: [], before: [], total: 0, lastAt: Number.NEGATIVE_INFINITY };
  }

  /** A request of this key has come. */
  see(hull: RateHull, cost: Tokens, now: Microseconds): void {
    if (now > hull.lastAt) {
      hull.lastAt = now;
      this.#append(hull, now + 1, hull.total);
    }
    hull.total += Math.round(cost * MICRO);
    const excess = hull.total - this.#burst;
    for (let i = 0; i < hull.at.length; i++) {
      const above = excess - (hull.before[i] as number);
      if (above <= 0) continue;
      const span = now - (hull.at[i] as number);
      const rate = span > 0 ? above / span : Number.POSITIVE_INFINITY;
      if (rate > this.#best) this.#best = rate;
    }
    this.#trim(hull);
  }

  #append(hull: RateHull, at: Microseconds, before: MicroTokens): void {
    const { at: ats, before: befores } = hull;
    const last = (): number => ats.length - 1;
    while (
      ats.length >= 2 &&
      steepness(hull, last() - 1) >= (before - (befores[last()] as number)) / (at - (ats[last()] as number))
    ) {
      ats.pop();
      befores.pop();
    }
    ats.push(at);
    befores.push(before);
    if (ats.length > this.#mostCorners) this.#widen(hull);
  }

  /** Drops the beginnings that can't matter any more. */
  #trim(hull: RateHull): void {
    let drop = 0;
    while (drop < hull.at.length - 1 && steepness(hull, drop) <= this.#best) drop += 1;
    if (drop === 0) return;
    hull.at.splice(0, drop);
    hull.before.splice(0, drop);
  }

  /** Replaces the edge whose neighbours, made longer, meet the least below it. */
  #widen(hull: RateHull): void {
    const { at, before } = hull;
    let least = Number.POSITIVE_INFINITY;
    let edge = -1;
    let corner = { at: 0, before: 0 };
    for (let i = 1; i < at.length - 2; i++) {
      const left = steepness(hull, i - 1);
      const right = steepness(hull, i + 1);
      const x0 = at[i] as number;
      const x1 = at[i + 1] as number;
      const y0 = before[i] as number;
      const y1 = before[i + 1] as number;
      const meet = x0 + (y1 - y0 - right * (x1 - x0)) / (left - right);
      const below = y0 + left * (meet - x0);
      const drop = y0 + steepness(hull, i) * (meet - x0) - below;
      if (drop >= least) continue;
      least = drop;
      edge = i;
      corner = { at: meet, before: below };
    }
    if (edge < 0) return;
    this.widened = true;
    at.splice(edge, 2, corner.at);
    before.splice(edge, 2, corner.before);
  }
}

/** Micro-tokens a microsecond between a corner and the next. */
function steepness({ at, before }: RateHull, corner: number): number {
  return (
    ((before[corner + 1] as number) - (before[corner] as number)) /
    ((at[corner + 1] as number) - (at[corner] as number))
  );
}
