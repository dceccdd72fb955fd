import type { CeilingTerms } from '../../../src/policy/policy.js';
import type { Microseconds, MicroTokens } from '../../../src/units.js';

/** A bucket that holds what may still be admitted in windows that begin at some moment or later. */
interface Tracker {
  level: MicroTokens;
  cap: MicroTokens;
}

/**
 * Watches every window at once: a window is over its bound exactly when a bucket of that burst and rate, fed with all
 * admissions, is overdrawn. One such bucket for windows that begin now; those of before a change of terms go on without
 * a cap (their windows end after it), and what a fault may cost is added as its stated slack.
 */
export class WindowOracle {
  burst: MicroTokens;
  rate: number;
  /** Most that any window was over its bound; negative while none was. */
  worst: MicroTokens = Number.NEGATIVE_INFINITY;
  #trackers: Tracker[];
  /** Added to the rate between a fence's move and the key's first call after it: both rates count (design, section 5). */
  #extraRate = 0;
  #fencedAt: CeilingTerms | undefined;
  #now: Microseconds;
  #terms: CeilingTerms;
  #exactFrom: Microseconds = Number.POSITIVE_INFINITY;
  /** All that could have been admitted so far. */
  available: MicroTokens;

  constructor(now: Microseconds, terms: CeilingTerms) {
    this.#now = now;
    this.#terms = terms;
    this.burst = terms.burst;
    this.rate = terms.rateNum / terms.rateDen;
    this.available = terms.burst;
    this.#trackers = [{ level: terms.burst, cap: terms.burst }];
  }

  move(now: Microseconds): void {
    if (this.#exactFrom <= now) {
      this.#moveTo(this.#exactFrom);
      this.#exactFrom = Number.POSITIVE_INFINITY;
      this.#trackers.push({ level: this.burst, cap: this.burst });
    }
    this.#moveTo(now);
  }

  admitted(now: Microseconds, tokens: MicroTokens): void {
    this.move(now);
    for (const tracker of this.#trackers) {
      tracker.level -= tokens;
      this.worst = Math.max(this.worst, -tracker.level);
    }
  }

  /** Windows that begin before `until` may be over by `tokens` more, as the design states for a fault of now. */
  allow(now: Microseconds, tokens: MicroTokens, until: Microseconds): void {
    this.move(now);
    for (const tracker of this.#trackers) {
      tracker.level += tokens;
      tracker.cap += tokens;
    }
    this.#exactFrom = this.#exactFrom === Number.POSITIVE_INFINITY ? until : Math.max(this.#exactFrom, until);
  }

  /** The partition's fence has moved to `terms`; this key has not been called since. */
  fenced(now: Microseconds, terms: CeilingTerms): void {
    if (this.#fencedAt && sameTerms(this.#fencedAt, terms)) return;
    this.move(now);
    this.#fencedAt = terms;
    this.#extraRate += terms.rateNum / terms.rateDen;
    for (const tracker of this.#trackers) tracker.cap = Number.POSITIVE_INFINITY;
  }

  /**
   * The key's bucket counts under `terms` from now on, with `over` tokens outstanding beyond its burst; windows across
   * may have `bonus` more, which is what the change's inheritance rule hands out.
   */
  changed(now: Microseconds, terms: CeilingTerms, over: MicroTokens, bonus: MicroTokens): void {
    if (!this.#fencedAt && bonus === 0 && sameTerms(this.#terms, terms)) return;
    this.move(now);
    this.#fencedAt = undefined;
    this.#extraRate = 0;
    this.available += bonus;
    this.#terms = terms;
    this.burst = terms.burst;
    this.rate = terms.rateNum / terms.rateDen;
    this.#trackers = this.#trackers.filter(({ level }) => level < 1e15).slice(-6);
    for (const tracker of this.#trackers) {
      tracker.cap = Number.POSITIVE_INFINITY;
      tracker.level += bonus;
    }
    this.#trackers.push({ level: terms.burst + over, cap: terms.burst + over });
  }

  /** Whether a move of the fence is still to be heard of by the key. */
  get betweenTerms(): boolean {
    return this.#fencedAt !== undefined;
  }

  #moveTo(now: Microseconds): void {
    if (now <= this.#now) return;
    const gain = (now - this.#now) * (this.rate + this.#extraRate);
    this.available += (now - this.#now) * this.rate;
    for (const tracker of this.#trackers) tracker.level = Math.min(tracker.cap, tracker.level + gain);
    this.#now = now;
  }
}

/** Whether both count alike. */
export function sameTerms(a: CeilingTerms, b: CeilingTerms): boolean {
  return a.burst === b.burst && a.rateNum === b.rateNum && a.rateDen === b.rateDen;
}
