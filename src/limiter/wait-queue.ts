import type { MicroTokens, Milliseconds, Tokens } from '../units.js';
import type { Decision } from './decision.js';

/** One `acquire` that waits. It has charged nothing, and charges all tiers at once when its turn comes. */
export interface Waiter {
  readonly cost: Tokens;
  readonly micro: MicroTokens;
  /** When it must be answered; Infinity for one that only waits for the store's answer. */
  readonly deadline: Milliseconds;
  /** Whether it waits for tokens up to its deadline, or only for the next answers of the store. */
  readonly patient: boolean;
  /** How many answers of the store the queue had seen when it came. */
  readonly since: number;
  settle(decision: Decision): void;
}

/** Those who wait for one key, first come first served. */
export class WaitQueue implements Iterable<Waiter> {
  readonly #waiters = new Set<Waiter>();
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

  add(waiter: Waiter): void {
    this.#waiters.add(waiter);
    this.micro += waiter.micro;
    this.soonestDeadline = Math.min(this.soonestDeadline, waiter.deadline);
  }

  /** Answers whether it was there. */
  remove(waiter: Waiter): boolean {
    if (!this.#waiters.delete(waiter)) return false;
    this.micro -= waiter.micro;
    return true;
  }
}
