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

/** Those of one priority, first come first served. */
interface Line {
  readonly priority: number;
  readonly waiters: Set<Waiter>;
  micro: MicroTokens;
}

/** Those who wait for one key: by priority, and within one first come first served. */
export class WaitQueue implements Iterable<Waiter> {
  /** Highest priority first; never an empty one. */
  readonly #lines: Line[] = [];
  /** Costs of all of them together. */
  micro: MicroTokens = 0;
  size = 0;
  /** Answers of the store so far. */
  answers = 0;
  /** No deadline of anybody here comes before this. */
  soonestDeadline: Milliseconds = Number.POSITIVE_INFINITY;

  *[Symbol.iterator](): Iterator<Waiter> {
    // A copy, as a line goes when its last waiter leaves, which may be while it is being served.
    for (const { waiters } of [...this.#lines]) yield* waiters;
  }

  /** Costs of those who would be served before one of this priority that comes now. */
  ahead(priority: number): MicroTokens {
    let ahead = 0;
    for (const line of this.#lines) if (line.priority >= priority) ahead += line.micro;
    return ahead;
  }

  add(waiter: Waiter): void {
    const place = this.#lines.findIndex(({ priority }) => priority <= waiter.priority);
    let line = this.#lines[place];
    if (line?.priority !== waiter.priority) {
      line = { priority: waiter.priority, waiters: new Set(), micro: 0 };
      this.#lines.splice(place < 0 ? this.#lines.length : place, 0, line);
    }
    line.waiters.add(waiter);
    line.micro += waiter.micro;
    this.micro += waiter.micro;
    this.size += 1;
    this.soonestDeadline = Math.min(this.soonestDeadline, waiter.deadline);
  }

  /** Answers whether it was there. */
  remove(waiter: Waiter): boolean {
    const place = this.#lines.findIndex(({ priority }) => priority === waiter.priority);
    const line = this.#lines[place];
    if (!line?.waiters.delete(waiter)) return false;
    line.micro -= waiter.micro;
    this.micro -= waiter.micro;
    this.size -= 1;
    if (line.waiters.size === 0) this.#lines.splice(place, 1);
    return true;
  }
}
