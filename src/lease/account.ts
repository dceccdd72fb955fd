import type { Policy, Terms } from '../policy/policy.js';
import type { PolicyCounters } from '../telemetry/observer.js';
import type { Microseconds, MicroTokens, Milliseconds } from '../units.js';
import { Demand, type Share } from './sizing.js';
import type { StoreClock } from './store-clock.js';
import type { Sleeper } from './wake-queue.js';
import type { Wallet } from './wallet.js';

/** The policy an account draws under, shared by all its keys; replaced in place when a newer version arrives. */
export interface LeasedPolicy {
  policy: Policy;
  readonly counters: PolicyCounters;
}

/** A call that has been sent and neither answered nor given up. */
export interface Flight {
  readonly seq: number;
  readonly sentAt: Milliseconds;
  readonly leaseMs: Milliseconds;
  readonly returned: MicroTokens;
  /** Told once, when the call is answered, given up or void. */
  settle: () => void;
}

/**
 * One key's dealings with its ceiling bucket: the wallet, which callers spend from, and what the keeper must remember
 * to refill it. An account is in one of these states:
 *
 *     cold      nothing has ever been granted (`granted` is false)
 *     active    the wallet has live tokens
 *     dry       the last lease was spent; the next call is due at `blockedUntil` or is under way
 *     expired   the last lease ended with tokens in it
 *     degraded  calls fail; the policy's outage mode answers once no live tokens are left
 */
export class Account implements Wallet, Sleeper, Share {
  readonly key: string;
  readonly owner: LeasedPolicy;
  readonly clock: StoreClock;
  terms: Terms;

  balance: MicroTokens = 0;
  endsAt: Milliseconds = Number.NEGATIVE_INFINITY;
  /** Callers ask the keeper to renew once the balance is below this. */
  lowWater: MicroTokens = 0;
  /** Asked for since demand was last measured. */
  attempted: MicroTokens = 0;
  /** Costs of all waiting callers together, and of the first; what a caller that does not wait missed. */
  waiting: MicroTokens = 0;
  waitingHead: MicroTokens = 0;
  missed: MicroTokens = 0;

  readonly demand: Demand;
  /** When it was last seen to be in use. */
  activeAt: Milliseconds;
  level = 0;
  horizonMs: Milliseconds = 0;
  /** Asking before this is useless; 0: ask whenever there is need. */
  blockedUntil: Milliseconds = 0;
  /** When the unmet need could be met at the earliest, as the last reply said. */
  retryAt: Milliseconds = 0;
  flight: Flight | undefined;
  /** Whether it is in the list of this tick. */
  queued = false;
  /** A call is wanted though nobody needs tokens: to report, to return, to register. */
  forced = false;
  /** A reply asked to return what can be spared. */
  giveBack = false;
  /** Lowest seq given up since the last reply taken; 0: none. */
  disown = 0;
  /** Calls that failed in a row. */
  failures = 0;
  granted = false;
  /** Lost tokens at the end of a lease since the last grant. */
  lapsed = false;

  era = '';
  incarnation: Microseconds = 0;
  certainUntil: Microseconds = 0;
  /** Taken from this incarnation of the bucket, net. */
  taken: MicroTokens = 0;
  /** Store time of the last reply before the outage in which the share mode answered; 0: none to pay for. */
  outageSince: Microseconds = 0;

  wakeAt: Milliseconds = Number.POSITIVE_INFINITY;
  wakeSlot = 0;

  constructor(key: string, owner: LeasedPolicy, terms: Terms, clock: StoreClock, now: Milliseconds) {
    this.key = key;
    this.owner = owner;
    this.terms = terms;
    this.clock = clock;
    this.demand = new Demand(now);
    this.activeAt = now;
  }

  /** Nothing in hand, nothing under way, nothing owed: the key can be forgotten without a loss to anybody. */
  get idle(): boolean {
    return (
      this.balance === 0 &&
      !this.flight &&
      !this.queued &&
      this.waiting === 0 &&
      this.disown === 0 &&
      this.outageSince === 0
    );
  }
}
