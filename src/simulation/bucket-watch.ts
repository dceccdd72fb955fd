import type { CeilingTerms } from '../policy/policy.js';
import { MICRO, type Milliseconds, type Tokens } from '../units.js';

/** A family of windows that begin while certain terms are in force. */
interface Windows {
  /** Most that was admitted above the refill in any window that ends now. */
  excess: Tokens;
  /** What may be: the burst, or more where a change of terms allows it. */
  allowance: Tokens;
}

/** Rounding of doubles, far below a token; the ledger itself is exact. */
const ROUNDING: Tokens = 1e-6;

/**
 * Watches one ceiling bucket from outside. Holds every window over all admissions against B + R·w, exactly: the largest
 * excess over all windows that end now follows from the last one. Beside it runs the ideal, one exact token bucket that
 * sees the same calls in the same order without any delay.
 */
export class BucketWatch {
  readonly policy: string;
  readonly key: string;
  /** Tokens by which the worst window was over its bound: negative while none was. */
  worst: Tokens = Number.NEGATIVE_INFINITY;
  /** Admissions that ended a window over its bound. */
  over = 0;
  /** Counted after the warm-up. */
  offered: Tokens = 0;
  admitted: Tokens = 0;
  ideal: Tokens = 0;
  denied = 0;
  falselyDenied = 0;

  #burst: Tokens;
  #ratePerMs: number;
  /** Which rate has been in force since when. */
  readonly #rates: { readonly at: Milliseconds; readonly ratePerMs: number }[];
  #at: Milliseconds = 0;
  #windows: Windows[];
  #idealTokens: Tokens;
  #idealAt: Milliseconds = 0;

  /** @param terms of the bucket; `undefined` where nothing bounds the fleet. */
  constructor(policy: string, key: string, terms: CeilingTerms | undefined) {
    this.policy = policy;
    this.key = key;
    this.#burst = terms ? terms.burst / MICRO : Number.POSITIVE_INFINITY;
    this.#ratePerMs = terms ? perMs(terms) : 0;
    this.#rates = [{ at: 0, ratePerMs: this.#ratePerMs }];
    this.#windows = [{ excess: 0, allowance: this.#burst }];
    this.#idealTokens = this.#burst;
  }

  get bounded(): boolean {
    return this.#burst < Number.POSITIVE_INFINITY;
  }

  /** What the terms in force at each time let through between two moments, the burst apart. */
  refillBetween(from: Milliseconds, until: Milliseconds): Tokens {
    if (!this.bounded) return Number.POSITIVE_INFINITY;
    return this.#rates.reduce((sum, { at, ratePerMs }, i) => {
      const end = Math.min(until, this.#rates[i + 1]?.at ?? until);
      return sum + Math.max(0, end - Math.max(from, at)) * ratePerMs;
    }, 0);
  }

  /** A call has come; answers whether the ideal lets it pass. */
  offer(cost: Tokens, now: Milliseconds): boolean {
    if (!this.bounded) return true;
    this.#idealTokens = Math.min(this.#burst, this.#idealTokens + (now - this.#idealAt) * this.#ratePerMs);
    this.#idealAt = now;
    if (this.#idealTokens < cost) return false;
    this.#idealTokens -= cost;
    return true;
  }

  /** A call has been admitted, by the clock reading `now`. */
  admit(cost: Tokens, now: Milliseconds): void {
    this.#leak(now);
    let over = false;
    for (const windows of this.#windows) {
      windows.excess += cost;
      const excess = windows.excess - windows.allowance;
      if (excess > this.worst) this.worst = excess;
      over ||= excess > ROUNDING;
    }
    if (over) this.over += 1;
  }

  /**
   * The store has begun to count this bucket under other terms. Windows that began before may use the larger of both
   * bursts (both, after a reset); those that begin now the new one, and what is still out beyond it.
   */
  change(terms: CeilingTerms, outstanding: Tokens, reset: boolean, now: Milliseconds): void {
    this.#leak(now);
    const burst = terms.burst / MICRO;
    for (const windows of this.#windows)
      windows.allowance = reset ? windows.allowance + burst : Math.max(windows.allowance, burst);
    this.#windows.push({ excess: 0, allowance: burst + Math.max(0, outstanding - burst) });
    this.#burst = burst;
    this.#ratePerMs = perMs(terms);
    this.#rates.push({ at: now, ratePerMs: this.#ratePerMs });
    this.#idealTokens = Math.min(burst, this.#idealTokens);
  }

  #leak(now: Milliseconds): void {
    const gained = (now - this.#at) * this.#ratePerMs;
    this.#at = now;
    for (const windows of this.#windows) windows.excess = Math.max(0, windows.excess - gained);
    // Windows without an excess are as good as ones that begin now.
    if (this.#windows.length > 1)
      this.#windows = this.#windows.filter(({ excess }, i) => excess > 0 || i === this.#windows.length - 1);
  }
}

/** Micro-tokens a microsecond are tokens a second. */
function perMs({ rateNum, rateDen }: CeilingTerms): number {
  return rateNum / rateDen / 1_000;
}
