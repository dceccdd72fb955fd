import type { PolicyMode } from '../policy/policy.js';
import type { DenialReason, LimitedBy } from '../telemetry/observer.js';
import type { Milliseconds, Tokens } from '../units.js';

/** Why a call would have been denied. */
export interface Denial {
  /** The tier that denied. */
  readonly limitedBy: LimitedBy;
  readonly reason: DenialReason;
  /**
   * Whole milliseconds after which the same call could pass if nobody else took tokens meanwhile; `undefined` where
   * waiting can't help. Exact for the local tier; for the ceiling never earlier than true.
   */
  readonly retryAfterMs: Milliseconds | undefined;
}

interface DecisionHead {
  readonly policy: string;
  /** Version of the policy that decided. */
  readonly policyVersion: number;
  /**
   * Whole tokens that are certain to be there right now, by the tier that has least of them: 3 means that a cost of 3
   * would be allowed. Never too many; of a ceiling in Redis it is what this instance has in hand, so it may be too few.
   */
  readonly remaining: Tokens;
  /** Most that could ever be there at once: the smallest burst of the tiers, such as 100. */
  readonly limit: Tokens;
  /**
   * Whole milliseconds until all of `limit` is there if nobody takes any, such as 2,000; `undefined` where a ceiling
   * outside this process has a part in it, of which an instance can't know.
   */
  readonly resetAfterMs: Milliseconds | undefined;
  /** Whether the ceiling store is out of reach at this moment. */
  readonly degraded: boolean;
}

/** The call may go ahead; its cost has been charged in every tier. */
export interface Allowed extends DecisionHead {
  readonly allowed: true;
  /** What an enforcing policy would have said, where a shadow policy let a call pass. */
  readonly shadow?: Denial;
}

/** The call may not go ahead; nothing has been charged anywhere. */
export interface Denied extends DecisionHead, Denial {
  readonly allowed: false;
}

export type Decision = Allowed | Denied;

/** How an attempt went, as a number, so that the path of a decision makes no object. Those allowed come first. */
export const VERDICT = {
  allowed: 0,
  /** Allowed by the policy's mode, without a look at any bucket. */
  policyAllows: 1,
  /** Allowed by the outage mode `allow` or `share`. */
  allowedDegraded: 2,
  localEmpty: 3,
  localCostAboveBurst: 4,
  ceilingEmpty: 5,
  ceilingCold: 6,
  ceilingExpired: 7,
  ceilingDegraded: 8,
  ceilingCostAboveBurst: 9,
  policyDenies: 10,
  closed: 11,
  queueFull: 12,
  blocked: 13,
  paced: 14,
} as const;

export type Verdict = (typeof VERDICT)[keyof typeof VERDICT];

/** Which tier denied, and why. */
interface Grounds {
  readonly limitedBy: LimitedBy;
  readonly reason: DenialReason;
}

const GROUNDS: readonly (Grounds | undefined)[] = grounds([
  [VERDICT.localEmpty, 'local', 'empty'],
  [VERDICT.localCostAboveBurst, 'local', 'cost-above-burst'],
  [VERDICT.ceilingEmpty, 'ceiling', 'empty'],
  [VERDICT.ceilingCold, 'ceiling', 'cold'],
  [VERDICT.ceilingExpired, 'ceiling', 'expired'],
  [VERDICT.ceilingDegraded, 'ceiling', 'degraded'],
  [VERDICT.ceilingCostAboveBurst, 'ceiling', 'cost-above-burst'],
  [VERDICT.policyDenies, 'policy', 'denied-by-policy'],
  [VERDICT.closed, 'policy', 'closed'],
  [VERDICT.queueFull, 'policy', 'queue-full'],
  [VERDICT.blocked, 'policy', 'blocked'],
  [VERDICT.paced, 'ceiling', 'paced'],
]);

/** Where a key shares its bucket with others, "empty" is not of its own doing. */
const OVERFLOW_GROUNDS: readonly (Grounds | undefined)[] = grounds([
  [VERDICT.localEmpty, 'local', 'overflow'],
  [VERDICT.ceilingEmpty, 'ceiling', 'overflow'],
]);

export function isAllowed(verdict: Verdict): boolean {
  return verdict <= VERDICT.allowedDegraded;
}

/** Whether a denial lets the call pass all the same. */
export function passesAsShadow(mode: PolicyMode, verdict: Verdict): boolean {
  return mode === 'shadow' && verdict !== VERDICT.closed;
}

/** Whether a call to the ceiling store may turn this denial round. */
export function awaitsLease(verdict: Verdict): boolean {
  return verdict === VERDICT.ceilingEmpty || verdict === VERDICT.ceilingCold || verdict === VERDICT.ceilingExpired;
}

/** Which tier denied, and why. `overflow`: the key shares its bucket with others. */
export function groundsOf(verdict: Verdict, overflow: boolean): Grounds {
  return ((overflow && OVERFLOW_GROUNDS[verdict]) || GROUNDS[verdict]) as Grounds;
}

function grounds(rows: readonly (readonly [Verdict, LimitedBy, DenialReason])[]): readonly (Grounds | undefined)[] {
  const table: (Grounds | undefined)[] = [];
  for (const [verdict, limitedBy, reason] of rows) table[verdict] = { limitedBy, reason };
  return table;
}
