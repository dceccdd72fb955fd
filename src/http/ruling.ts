import type { Decision, Policy } from '../index.js';
import type { Tokens } from '../units.js';

/** What one policy had to say about a request: the decision, and what it was about. */
export interface Ruling {
  readonly decision: Decision;
  /** The policy that decided, as it is in force. */
  readonly policy: Policy;
  readonly key: string;
  readonly cost: Tokens;
}
