import type { Outcome, Stage } from './stage.js';

/** One fault, and what the design promises of it. */
export interface Scenario {
  readonly name: string;
  /** Over-admission the design allows, in words. */
  readonly bound: string;
  /** Also part of `npm test`. */
  readonly inTests?: boolean;
  /** Also part of `npm test` with the terms changed meanwhile. */
  readonly changedInTests?: boolean;
  /** Whether it is about a change of terms by itself. */
  readonly changesTerms?: boolean;
  /** Why it can't be played on this machine; undefined where it can. */
  readonly missing?: () => string | undefined;
  play(stage: Stage): Promise<Outcome>;
}
