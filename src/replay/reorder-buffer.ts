import type { Microseconds } from '../units.js';

interface Timed {
  readonly at: Microseconds;
}

/** Something held, and when it came. */
interface Entry<T extends Timed> {
  readonly item: T;
  readonly order: number;
}

/**
 * Puts in order of time what comes nearly so, as servers write a line when a request ends: each is held until one has
 * come that is `window` later. What comes later than that can't be put in its place any more.
 */
export class ReorderBuffer<T extends Timed> {
  /** Came after something later had been let go. */
  late = 0;
  readonly #window: Microseconds;
  readonly #most: number;
  /** A heap, the earliest on top. */
  readonly #held: Entry<T>[] = [];
  #order = 0;
  #newest: Microseconds = Number.NEGATIVE_INFINITY;
  #passed: Microseconds = Number.NEGATIVE_INFINITY;

  /** @param most is held at a time: beyond it the earliest is let go before its window is over. */
  constructor(window: Microseconds, most: number) {
    this.#window = window;
    this.#most = most;
  }

  push(item: T): void {
    if (item.at < this.#passed) this.late += 1;
    this.#newest = Math.max(this.#newest, item.at);
    this.#rise({ item, order: this.#order++ });
  }

  /** The next in order that is to wait no longer. */
  shift(): T | undefined {
    const first = this.#held[0];
    if (!first) return undefined;
    const due = first.item.at <= this.#newest - this.#window || this.#held.length > this.#most;
    return due ? this.flush() : undefined;
  }

  /** The next in order, at the end of all. */
  flush(): T | undefined {
    const first = this.#held[0];
    if (!first) return undefined;
    const last = this.#held.pop() as Entry<T>;
    if (this.#held.length > 0) this.#sink(last);
    this.#passed = Math.max(this.#passed, first.item.at);
    return first.item;
  }

  #rise(entry: Entry<T>): void {
    const held = this.#held;
    let index = held.length;
    held.push(entry);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = held[parent] as Entry<T>;
      if (before(above, entry)) break;
      held[index] = above;
      index = parent;
    }
    held[index] = entry;
  }

  #sink(entry: Entry<T>): void {
    const held = this.#held;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= held.length) break;
      const right = held[child + 1];
      if (right && before(right, held[child] as Entry<T>)) child += 1;
      const below = held[child] as Entry<T>;
      if (before(entry, below)) break;
      held[index] = below;
      index = child;
    }
    held[index] = entry;
  }
}

function before(a: Entry<Timed>, b: Entry<Timed>): boolean {
  return a.item.at < b.item.at || (a.item.at === b.item.at && a.order < b.order);
}
