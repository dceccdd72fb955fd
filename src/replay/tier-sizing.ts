import type { Level } from '../ceiling/exact.js';
import type { CeilingTier } from '../policy/policy.js';
import type { Microseconds, Tokens } from '../units.js';
import { SmallestBurst } from './smallest-burst.js';
import { type RateHull, SmallestRate } from './smallest-rate.js';

/** What a tier would have needed to deny nobody, one number kept and the other free. */
export interface Sizing {
  /** With the rate it has. */
  readonly smallestBurst: Tokens;
  /** With the burst it has, in tokens a second; `undefined`: none, more than the burst came at one moment. */
  readonly smallestRate: number | undefined;
  /** Whether the rate may be a little above the smallest: see `SmallestRate`. */
  readonly rateIsAbout: boolean;
}

/** What one key has asked for so far. */
export interface Demand {
  readonly level: Level;
  readonly hull: RateHull;
}

/** Sizes a token bucket by all requests that come to it, denied or not. */
export class TierSizing {
  readonly #burst: SmallestBurst;
  readonly #rate: SmallestRate;

  constructor(terms: CeilingTier) {
    this.#burst = new SmallestBurst(terms);
    this.#rate = new SmallestRate(terms.burst);
  }

  newDemand(now: Microseconds): Demand {
    return { level: this.#burst.newLevel(now), hull: this.#rate.newHull() };
  }

  see({ level, hull }: Demand, cost: Tokens, now: Microseconds): void {
    this.#burst.see(level, cost, now);
    this.#rate.see(hull, cost, now);
  }

  isUntouched({ level }: Demand, now: Microseconds): boolean {
    return this.#burst.isUntouched(level, now);
  }

  get result(): Sizing {
    const { perSecond, widened } = this.#rate;
    return {
      smallestBurst: this.#burst.tokens,
      smallestRate: Number.isFinite(perSecond) ? perSecond : undefined,
      rateIsAbout: widened,
    };
  }
}
