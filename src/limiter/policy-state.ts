import type { LeasedPolicy } from '../lease/account.js';
import type { Policy } from '../policy/policy.js';
import type { PolicyCounters } from '../telemetry/observer.js';
import { MICRO } from '../units.js';

/** One policy as this limiter runs it: the terms in force, and what has been counted under its name. */
export class PolicyState implements LeasedPolicy {
  policy: Policy;
  /** The bursts a cost must fit in, as first constructed: above them it is the caller's mistake, not a denial. */
  readonly constructed: Policy;
  /** Whether a cost of one token fits every burst as constructed. */
  readonly unitFits: boolean;
  readonly counters: PolicyCounters;
  /** The newest version the ceiling store was seen to have. */
  newestSeen: number;

  constructor(policy: Policy) {
    this.policy = policy;
    this.constructed = policy;
    this.unitFits = [policy.terms, ...policy.overrides.values()].every(
      ({ local, ceiling }) => (local?.burst ?? 1) >= 1 && (ceiling?.burst ?? MICRO) >= MICRO,
    );
    this.newestSeen = policy.version;
    this.counters = {
      policy: policy.name,
      allowed: 0,
      allowedDegraded: 0,
      deniedLocal: 0,
      deniedCeiling: 0,
      deniedPolicy: 0,
      shadowDenied: 0,
      overflow: 0,
      tokensGranted: 0,
      tokensSpent: 0,
      tokensReturned: 0,
      tokensExpired: 0,
      tokensUnleased: 0,
      leaseCalls: 0,
      leaseFailures: 0,
      leaseRefusals: 0,
      termConflicts: 0,
    };
  }
}
