import type { TokenBucket } from '../algorithm/token-bucket.js';
import type { Account } from '../lease/account.js';
import type { Sleeper } from '../lease/wake-queue.js';
import type { Policy, Terms } from '../policy/policy.js';
import type { Milliseconds, Tokens } from '../units.js';
import type { ShareBucket } from './share-bucket.js';
import type { WaitQueue } from './wait-queue.js';

/** All that this process keeps for one key of one policy: its local bucket, its account with the ceiling, its queue. */
export class KeyState implements TokenBucket, Sleeper {
  readonly key: string;
  /** Stands for all keys there was no room for. */
  readonly overflow: boolean;
  /** Whether it is what the table has for its key: not dropped since, and not the bucket of the overflow. */
  kept: boolean;
  /** The policy these terms are of; another one in force means that the state must be re-shaped. */
  policy: Policy;
  terms: Terms;
  // Declared, not defined: a field that begins as `undefined` makes V8 box every number that is written to it.
  declare tokens: Tokens;
  declare at: Milliseconds;
  account: Account | undefined;
  /** Callers of `acquire` that wait; undefined while there are none. */
  waiters: WaitQueue | undefined;
  /** In an outage with the mode `share`: what this instance may admit by itself. */
  share: ShareBucket | undefined;
  wakeAt: Milliseconds = Number.POSITIVE_INFINITY;
  wakeSlot = 0;

  constructor(key: string, overflow: boolean, policy: Policy, terms: Terms, now: Milliseconds) {
    this.key = key;
    this.overflow = overflow;
    this.kept = !overflow;
    this.policy = policy;
    this.terms = terms;
    this.tokens = terms.local?.burst ?? 0;
    this.at = now;
  }
}
