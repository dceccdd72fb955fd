import type { MicroTokens, Milliseconds, Tokens } from '../units.js';
import type { Verdict } from './decision.js';

/** One `acquire` that waits. It has charged nothing, and charges all tiers at once when its turn comes. */
export interface Waiter {
  readonly cost: Tokens;
  readonly micro: MicroTokens;
  /** Those of a higher one go first. */
  readonly priority: number;
  /** When it must be answered; Infinity for one that only waits for the store's answer. */
  readonly deadline: Milliseconds;
  /** Whether it waits for tokens up to its deadline, or only for the next answers of the store. */
  readonly patient: boolean;
  /** How many answers of the store the queue had seen when it came. */
  readonly since: number;
  /** Told how it went, and how many micro-tokens were before it. */
  settle(verdict: Verdict, ahead: MicroTokens, now: Milliseconds): void;
}

/** Those who wait for one key: by priority, and within one first come first served. */
export class WaitQueue implements Iterable<Waiter> {
  readonly #waiters = new Set<Waiter>();
  /** Nobody here has a lower priority. */
  #lowest = Number.POSITIVE_INFINITY;
  /** Costs of all of them together. */
  micro: MicroTokens = 0;
  /** Answers of the store so far. */
  answers = 0;
  /** No deadline of anybody here comes before this. */
  soonestDeadline: Milliseconds = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#waiters.size;
  }

  [Symbol.iterator](): Iterator<Waiter> {
    return this.#waiters.values();
  }

  /** Costs of those who would be served before one of this priority that comes now. */
  ahead(priority: number): MicroTokens {
    let { micro } = this;
    for (const behind of this.#below(priority)) micro -= behind.micro;
    return micro;
  }

  add(waiter: Waiter): void {
    const behind = this.#below(waiter.priority);
    this.#waiters.add(waiter);
    // To the end again, in their order: a set keeps that of insertion.
    for (const other of behind) if (this.#waiters.delete(other)) this.#waiters.add(other);
    this.#lowest = Math.min(this.#lowest, waiter.priority);
    this.micro += waiter.micro;
    this.soonestDeadline = Math.min(this.soonestDeadline, waiter.deadline);
  }

  /** Answers whether it was there. */
  remove(waiter: Waiter): boolean {
    if (!this.#waiters.delete(waiter)) return false;
    this.micro -= waiter.micro;
    return true;
  }

  #below(priority: number): Waiter[] {
    return priority > this.#lowest ? [...this.#waiters].filter((waiter) => waiter.priority < priority) : [];
  }
}
