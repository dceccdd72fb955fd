import type { LeasedPolicy } from '../lease/account.js';
import type { Policy } from '../policy/policy.js';
import type { PolicyCounters } from '../telemetry/observer.js';
import type { Milliseconds } from '../units.js';
import { CostLimits } from './cost-limits.js';

/** One policy as this limiter runs it: the terms in force, and what has been counted under its name. */
export class PolicyState implements LeasedPolicy {
  policy: Policy;
  /** When that came into force here, on the monotonic clock. */
  since: Milliseconds;
  readonly costs: CostLimits;
  readonly counters: PolicyCounters;

  constructor(policy: Policy, now: Milliseconds) {
    this.policy = policy;
    this.since = now;
    this.costs = new CostLimits(policy);
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

  /** Puts a newer version in force. */
  replace(policy: Policy, now: Milliseconds): void {
    this.policy = policy;
    this.since = Math.max(this.since, now);
    this.costs.widen(policy);
  }
}
