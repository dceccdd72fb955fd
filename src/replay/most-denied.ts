/** A key and how often it was denied: at least `denied` times, at most `atMost`. */
export interface DeniedKey {
  readonly key: string;
  readonly denied: number;
  readonly atMost: number;
}

/**
 * Which keys were denied most, in bounded memory: exact while no more than twice `kept` have been denied at all.
 * Beyond that, those that were denied least are forgotten, and how often they had been is remembered as what a key that
 * comes (back) later may lack in its count (Metwally's Space-Saving, a batch at a time).
 */
export class MostDenied {
  readonly #kept: number;
  readonly #keys = new Map<string, { denied: number; readonly missed: number }>();
  #missed = 0;

  constructor(kept: number) {
    this.#kept = kept;
  }

  add(key: string): void {
    const known = this.#keys.get(key);
    if (known) {
      known.denied += 1;
      return;
    }
    if (this.#keys.size >= 2 * this.#kept) this.#forget();
    this.#keys.set(key, { denied: 1, missed: this.#missed });
  }

  /** The first `count`, those that were denied most first. */
  top(count: number): DeniedKey[] {
    return this.#sorted()
      .slice(0, count)
      .map(([key, { denied, missed }]) => ({ key, denied, atMost: denied + missed }));
  }

  #forget(): void {
    for (const [key, { denied, missed }] of this.#sorted().slice(this.#kept)) {
      this.#missed = Math.max(this.#missed, denied + missed);
      this.#keys.delete(key);
    }
  }

  #sorted() {
    return [...this.#keys].sort(([, a], [, b]) => b.denied - a.denied);
  }
}
