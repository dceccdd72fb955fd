import { type InLine, Line } from '../line.js';
import type { MicroTokens, Milliseconds, Tokens } from '../units.js';
import type { Verdict } from './decision.js';

/** One `acquire` that waits. It has charged nothing, and charges all tiers at once when its turn comes. */
export interface Waiter extends InLine<Waiter> {
  readonly cost: Tokens;
  readonly micro: MicroTokens;
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
export class WaitQueue extends Line<Waiter> {
  /** Costs of all of them together. */
  micro: MicroTokens = 0;
  /** Answers of the store so far. */
  answers = 0;
  /** No deadline of anybody here comes before this. */
  soonestDeadline: Milliseconds = Number.POSITIVE_INFINITY;

  /** Costs of those who would be served before one of this priority that comes now. */
  ahead(priority: number): MicroTokens {
    let { micro } = this;
    for (const behind of this.below(priority)) micro -= behind.micro;
    return micro;
  }

  override add(waiter: Waiter): void {
    super.add(waiter);
    this.micro += waiter.micro;
    this.soonestDeadline = Math.min(this.soonestDeadline, waiter.deadline);
  }

  override delete(waiter: Waiter): boolean {
    const stood = super.delete(waiter);
    if (stood) this.micro -= waiter.micro;
    return stood;
  }
}
