import type { CeilingTerms } from '../policy/policy.js';
import type { Microseconds, MicroTokens } from '../units.js';
import type { GrantReply } from './ceiling-store.js';
import type { Level } from './exact.js';

/** Demand of the members whose demand falls in one class: the sums the fair level is computed from. */
export interface DemandClass {
  demand: MicroTokens;
  weight: number;
}

/** Terms as the store keeps them. */
export interface StoredTerms extends CeilingTerms {
  /** Of the windows; 0 for a token bucket. */
  readonly length: Microseconds;
}

/** What a bucket that is no token bucket remembers of what was spent; each rule uses its part. */
export interface Window {
  /** The one under way (fixed windows, counter). */
  start: Microseconds;
  end: Microseconds;
  /** Spent in it, and in the one before it (counter); all that is logged (log). */
  current: MicroTokens;
  previous: MicroTokens;
  /** The log, oldest first, and when what is in its last entry began to be spent. */
  times: Microseconds[];
  amounts: MicroTokens[];
  lastFrom: Microseconds;
}

/** One ceiling bucket as the store keeps it. `level.tokens` is T, `outstanding` is O: T + O ≤ burst. */
export interface Bucket extends StoredTerms {
  version: number;
  burst: MicroTokens;
  rateNum: number;
  rateDen: number;
  length: Microseconds;
  /** The era it was last touched in. */
  era: string;
  /** When it was made: tells one incarnation of a key from the next. */
  incarnation: Microseconds;
  level: Level;
  window: Window;
  /** Leases that ended up to then were cleared together with their window: what their records say is out is not. */
  clearedAt: Microseconds;
  outstanding: MicroTokens;
  /** What the call under way counts as spent: reported so, or out on a lease that ended. */
  spent: MicroTokens;
  /** What it takes back of what had been counted as spent. */
  refund: MicroTokens;
  holders: Map<string, Holder>;
  /** Latest end of any lease ever granted here. */
  lastEnd: Microseconds;
  /** Longest lease ever granted here: a step back of the clock clamps every end to now + this + grace. */
  longestLease: Microseconds;
  /** Before this moment no lease ends and no record can be dropped. */
  sweepAt: Microseconds;
  /** From here on the bucket is the same as an untouched one. */
  expiresAt: Microseconds;
  /** Up to when an outage's share spends have been charged. */
  paidUntil: Microseconds;
  /** Members by class of demand, and how many there are. */
  classes: Map<number, DemandClass>;
  members: number;
  /** The last slot given to a denied holder. */
  slotAt: Microseconds;
  /** The one that waits for more than others leave it, what it lacks, and until when the place is kept. */
  reservedFor: string;
  reserved: MicroTokens;
  reservedUntil: Microseconds;
}

/** What the store knows of one holder of a bucket. */
export interface Holder {
  /** Its share of `outstanding`. */
  outstanding: MicroTokens;
  seq: number;
  lastGrant: MicroTokens;
  leaseEnd: Microseconds;
  /** Fairness forgets it only after this: longer than the gap between two of its turns. */
  memberUntil: Microseconds;
  demand: MicroTokens;
  weight: number;
  /** Entitlement at the fair level that has not been granted yet; below zero after a large grant. */
  credit: MicroTokens;
  creditAt: Microseconds;
  slotAt: Microseconds;
  /** What the last reply said, for a repeat of its call. */
  reply: ReplyBody;
}

/** The parts of a reply that depend on the call and not on the moment. */
export type ReplyBody = Pick<GrantReply, 'granted' | 'level' | 'horizon' | 'next' | 'retry' | 'giveBack' | 'conflict'>;
