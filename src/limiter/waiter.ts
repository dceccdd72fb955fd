import type { MicroTokens, Milliseconds, Tokens } from '../units.js';
import type { Decision } from './decision.js';

/** One `acquire` that waits. It has charged nothing, and charges all tiers at once when its turn comes. */
export interface Waiter {
  readonly cost: Tokens;
  readonly micro: MicroTokens;
  /** When it must be answered; Infinity for one that only waits for a round trip. */
  readonly deadline: Milliseconds;
  /** Whether it waits for tokens up to its deadline, or only for the next answers of the store. */
  readonly patient: boolean;
  /** Answers of the store it has seen. */
  answers: number;
  settle(decision: Decision, outcome: 'allowed' | 'denied'): void;
}

/** Answers of the store that one who is not patient sees at most: that of a call under way when it came, and its own. */
export const ANSWERS_AWAITED = 2;
