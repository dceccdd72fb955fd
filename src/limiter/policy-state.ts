import type { LeasedPolicy } from '../lease/account.js';
import type { Policy } from '../policy/policy.js';
import { NO_COUNTS, type PolicyCounters } from '../telemetry/observer.js';
import type { Milliseconds } from '../units.js';
import { CostLimits } from './cost-limits.js';

/** One policy as this limiter runs it: the terms in force, and what has been counted under its name. */
export class PolicyState implements LeasedPolicy {
  policy: Policy;
  /** When that came into force here, on the monotonic clock. */
  since: Milliseconds;
  /** Counts the versions that have been in force here, from 1. */
  edition = 1;
  readonly costs: CostLimits;
  readonly counters: PolicyCounters;

  /** By edition, what was in force before. */
  readonly #past = new Map<number, Policy>();
  /** Keys that are blocked, or were just now, by their names. */
  readonly #blocks: ReadonlyMap<string, { readonly end: Milliseconds }>;

  /** Makes of a key the name under which it leaves this process; `undefined`: it leaves as it is. */
  readonly digest: ((key: string) => string) | undefined;

  constructor(
    policy: Policy,
    now: Milliseconds,
    blocks: ReadonlyMap<string, { readonly end: Milliseconds }>,
    digest: ((key: string) => string) | undefined,
  ) {
    this.#blocks = blocks;
    this.digest = digest;
    this.policy = policy;
    this.since = now;
    this.costs = new CostLimits(policy);
    this.counters = { policy: policy.name, ...NO_COUNTS };
  }

  /** Until when a key is blocked, on the monotonic clock; `-Infinity`: it is not. */
  blockEnd(key: string): Milliseconds {
    return this.#blocks.get(this.nameOf(key))?.end ?? Number.NEGATIVE_INFINITY;
  }

  nameOf(key: string): string {
    // The bucket that keys share for which there is no room has no key.
    return this.digest && key ? this.digest(key) : key;
  }

  /** The policy of an edition that a key may still be under. */
  ofEdition(edition: number): Policy {
    return edition === this.edition ? this.policy : (this.#past.get(edition) as Policy);
  }

  /** No key is under an edition before this any more. */
  forgetBefore(edition: number): void {
    for (const past of this.#past.keys()) if (past < edition) this.#past.delete(past);
  }

  /** Puts a newer version in force. */
  replace(policy: Policy, now: Milliseconds): void {
    this.#past.set(this.edition, this.policy);
    this.policy = policy;
    this.edition += 1;
    this.since = Math.max(this.since, now);
    this.costs.widen(policy);
  }
}
