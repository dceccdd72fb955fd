import { microTokensOf } from '../limiter/cost-limits.js';
import type { Decision } from '../limiter/decision.js';
import { MICRO, type Tokens } from '../units.js';

/** What a reservation needs of the limiter that made it. */
export interface ReservationTerms {
  readonly cost: Tokens;
  /** Whether it can still be settled. */
  readonly live: () => boolean;
  readonly refund: (tokens: Tokens) => void;
  readonly penalise: (tokens: Tokens) => void;
}

/**
 * Tokens charged in advance for a request whose true cost is known only afterwards. Until it is settled, cancelled or
 * expires it counts as spent, and after that too: one that nobody settles has cost what was reserved, and holds nothing.
 */
export class Reservation {
  /** Whether there was enough; where not, nothing has been charged and there is nothing to settle. */
  readonly decision: Decision;
  readonly cost: Tokens;
  #terms: ReservationTerms | undefined;

  /** @internal Made by `reserve`. */
  constructor(decision: Decision, terms: ReservationTerms) {
    this.decision = decision;
    this.cost = terms.cost;
    // What was let pass without being charged can't be given back.
    const charged = decision.allowed && decision.shadow === undefined && decision.limit !== Number.POSITIVE_INFINITY;
    this.#terms = charged ? terms : undefined;
  }

  get allowed(): boolean {
    return this.decision.allowed;
  }

  /**
   * Says what it really cost: what was too much comes back, what was too little is charged on top, whether or not it is
   * there. Answers whether that took effect: once, and not after it has expired.
   *
   * @param actual tokens; 0 or more, at most six decimals
   * @throws {InvalidCostError}
   */
  settle(actual: Tokens): boolean {
    const micro = actual === 0 ? 0 : microTokensOf(actual);
    const terms = this.#terms;
    this.#terms = undefined;
    if (!terms?.live()) return false;
    // In whole millionths, so that the difference of two decimals is one again.
    const difference = microTokensOf(this.cost) - micro;
    if (difference > 0) terms.refund(difference / MICRO);
    else if (difference < 0) terms.penalise(-difference / MICRO);
    return true;
  }

  /** Gives all of it back: the request was not made. Answers whether that took effect. */
  cancel(): boolean {
    return this.settle(0);
  }
}
