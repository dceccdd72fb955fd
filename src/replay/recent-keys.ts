/**
 * What is known of each key, of at most `most` of them. Kept in two halves: the keys seen lately, and those seen before
 * them. When the newer half is full the older one is dropped; so a key is forgotten that was not seen while half of
 * `most` others were.
 */
export class RecentKeys<T> {
  readonly #half: number;
  readonly #dropped: (states: Iterable<T>) => void;
  #newer = new Map<string, T>();
  #older = new Map<string, T>();

  /** @param dropped told of what is forgotten. */
  constructor(most: number, dropped: (states: Iterable<T>) => void) {
    this.#half = Math.max(1, Math.floor(most / 2));
    this.#dropped = dropped;
  }

  get(key: string): T | undefined {
    const recent = this.#newer.get(key);
    if (recent !== undefined) return recent;
    const known = this.#older.get(key);
    if (known === undefined) return undefined;
    this.#older.delete(key);
    this.add(key, known);
    return known;
  }

  /** Adds a key that is not there. */
  add(key: string, state: T): void {
    if (this.#newer.size >= this.#half) {
      this.#dropped(this.#older.values());
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(key, state);
  }
}
