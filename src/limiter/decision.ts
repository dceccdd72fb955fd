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
  /** Cost that would be allowed right now, by the tier that has least of it. */
  readonly remaining: Tokens;
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

/** How an attempt went, as a number, so that the path of a decision makes no object. */
export const VERDICT = {
  allowed: 0,
  /** Allowed by the outage mode `allow` or `share`. */
  allowedDegraded: 1,
  localEmpty: 2,
  localCostAboveBurst: 3,
  ceilingEmpty: 4,
  ceilingCold: 5,
  ceilingExpired: 6,
  ceilingDegraded: 7,
  ceilingCostAboveBurst: 8,
  policyDenies: 9,
} as const;

export type Verdict = (typeof VERDICT)[keyof typeof VERDICT];

const LIMITED_BY: readonly (LimitedBy | undefined)[] = [
  undefined,
  undefined,
  'local',
  'local',
  'ceiling',
  'ceiling',
  'ceiling',
  'ceiling',
  'ceiling',
  'policy',
];
const REASON: readonly (DenialReason | undefined)[] = [
  undefined,
  undefined,
  'empty',
  'cost-above-burst',
  'empty',
  'cold',
  'expired',
  'degraded',
  'cost-above-burst',
  'denied-by-policy',
];

export function isAllowed(verdict: Verdict): boolean {
  return verdict <= VERDICT.allowedDegraded;
}

/** Whether a call to the ceiling store may turn this denial round. */
export function awaitsLease(verdict: Verdict): boolean {
  return verdict === VERDICT.ceilingEmpty || verdict === VERDICT.ceilingCold || verdict === VERDICT.ceilingExpired;
}

export function limitedBy(verdict: Verdict): LimitedBy {
  return LIMITED_BY[verdict] ?? 'policy';
}

export function reasonOf(verdict: Verdict, overflow: boolean): DenialReason {
  const reason = REASON[verdict] ?? 'denied-by-policy';
  return overflow && reason === 'empty' ? 'overflow' : reason;
}
