import type { Inheritance } from '../policy/policy.js';
import type { Microseconds, MicroTokens } from '../units.js';
import type { MarkStore } from './mark-store.js';
import type { PaceStore } from './pace-store.js';
import type { SeatStore } from './seat-store.js';

/**
 * One call of one holder about one bucket: it reports, gives back and asks, all at once. All numbers are whole.
 * `docs/design.md` has the ledger these fields belong to; the rules they serve are numbered there.
 */
export interface LeaseCall {
  readonly policy: string;
  readonly key: string;
  /** Name under which the terms are fenced: the policy's, or `policy#key` for an override. */
  readonly fence: string;
  readonly version: number;
  readonly burst: MicroTokens;
  readonly rateNum: number;
  readonly rateDen: number;
  /** Left out: a token bucket. A ledger, which is a policy's name here, has buckets of one rule only. */
  readonly window?: WindowCall | undefined;
  readonly inheritance: Inheritance;
  /** Longest that a wallet under this policy outlives its call at the store, under `storeLoss: 'strict'`; else 0. */
  readonly guard: Microseconds;

  /** Random identity of the calling limiter object (rule 3). */
  readonly holder: string;
  /** From the limiter's one counter, which never restarts (rule 2). */
  readonly seq: number;
  /** Lowest seq given up since the last reply taken from this bucket; 0: none (rule 4). */
  readonly disown: number;
  /** What the holder still holds, all of it live. */
  readonly unspent: MicroTokens;
  /** What it has taken out of its wallet to give back. */
  readonly returned: MicroTokens;
  /** What was spent and did not come about after all: it comes back as far as there is room. */
  readonly refund: MicroTokens;
  /** Store time before which nothing of the refund was spent; 0: not known. */
  readonly refundSince: Microseconds;
  /** For callers that wait now, all together, over what is in hand. */
  readonly need: MicroTokens;
  /** What the one that has waited longest lacks: less than this serves nobody. At most `need`. */
  readonly head: MicroTokens;
  /** On top of `need`, to be held ready. */
  readonly want: MicroTokens;
  /** Tokens asked of this bucket a second at this holder, denied ones included. */
  readonly demand: MicroTokens;
  /** Share of the fleet relative to other holders; 1 by default. */
  readonly weight: number;
  /** How long the grant may be spent, from before the call was sent. */
  readonly lease: Microseconds;
  /** The holder's idea of the store's time when it sent this; 0 where the call carries nothing to believe (rule 7). */
  readonly sentAt: Microseconds;
  /** Store time of the last reply before an outage in which the share mode was in force; else 0. */
  readonly since: Microseconds;
  /** Witness: what this holder took from the bucket's incarnation, net; 0: none. */
  readonly witness: MicroTokens;
  /** The incarnation the witness speaks of (its birth), and until when its key was certain to exist. */
  readonly incarnation: Microseconds;
  readonly certainUntil: Microseconds;
}

/** How time is cut for a ceiling that is no token bucket; `burst` of the call is then what is allowed in a window. */
export interface WindowCall {
  /**
   * Fixed windows: at multiples of `length` since 1970, from the first use on, or of the calendar. Sliding ones: as a log
   * of what was spent, or as two counts.
   */
  readonly rule: 'epoch' | 'first-use' | 'calendar' | 'log' | 'counter';
  /** Of each window; of the calendar's, the usual one. */
  readonly length: Microseconds;
  /** For `calendar`, the window in which the caller takes the store's time to lie; else 0. */
  readonly start: Microseconds;
  readonly end: Microseconds;
}

/** What every reply says. */
export interface ReplyHead {
  readonly seq: number;
  /** Store time at which the call ran. */
  readonly now: Microseconds;
  /** Identity of the store's data; another one than before means that the store lost its data. */
  readonly era: string;
  /** The terms in force at the store. A higher version than the caller's: it must re-read its policy. */
  readonly version: number;
  readonly burst: MicroTokens;
  readonly rateNum: number;
  readonly rateDen: number;
}

/** The call ran (now or, where it is a repeat, the first time it came). */
export interface GrantReply extends ReplyHead {
  readonly status: 'granted';
  readonly granted: MicroTokens;
  /** How long it may be spent, from before the call was sent, where that is shorter than asked for; else 0. */
  readonly lease: Microseconds;
  /** Fair level, micro-tokens a second a unit of weight; 0 while demand fits and nobody is held to a share. */
  readonly level: number;
  /** The demand a batch should be sized for. */
  readonly horizon: Microseconds;
  /** How long until the next call is useful; 0: whenever there is need. */
  readonly next: Microseconds;
  /** How long until the unmet need could be met, nobody else interfering; 0 where it was met. */
  readonly retry: Microseconds;
  /** A larger need waits: holders should return what they can spare. */
  readonly giveBack: boolean;
  /** Other terms came under the same version; the stricter are in force. */
  readonly conflict: boolean;
  readonly incarnation: Microseconds;
  readonly certainUntil: Microseconds;
}

/**
 * `stale`: an older seq, nothing was changed. `refused`: not executed; too old or from the future (rule 7), or another
 * window of the calendar has begun than the call says.
 */
export interface RefusalReply extends ReplyHead {
  readonly status: 'stale' | 'refused';
}

export type LeaseReply = GrantReply | RefusalReply;

/**
 * The fleet's ceilings. Implemented in memory (the executable model), by Redis, and by the primary of a Node cluster.
 *
 * Contract: each call is atomic; time and era are the store's own; calls may be executed twice or late and still do no
 * harm (rules 2–7). `lease` starts all calls before it returns and never throws: what fails rejects its own promise.
 * A promise may stay pending for ever (the caller has a deadline of its own). A bucket that isn't there is a copy of
 * the untouched one. `close` closes only what the store opened.
 */
export interface CeilingStore {
  /** False while nothing can be sent: callers then don't call, and count the store as unreachable. */
  readonly ready: boolean;
  lease(calls: readonly LeaseCall[]): readonly Promise<LeaseReply>[];
  /** Present where the store answers within the call itself, so that a cold key needs no round trip. */
  leaseNow?(call: LeaseCall): LeaseReply;
  /** Present beside it: what the bucket would grant now. Changes nothing, and may be too low but never too high. */
  leftNow?(look: Pick<LeaseCall, 'policy' | 'key' | 'fence' | 'version' | 'holder' | 'window'>): MicroTokens;
  /** Counts seats; where it is missing, policies with `concurrency` are refused seats. */
  readonly seats?: SeatStore;
  /** Reserves slots; where it is missing, a ceiling that is a leaky bucket is out of reach. */
  readonly pacer?: PaceStore;
  /** Remembers who is blocked; where it is missing, a block holds in the instance that made it only. */
  readonly marks?: MarkStore;
  /** Counts `holder` as alive in `group` and answers how many are (seen within `fleetTtlMs`). */
  heartbeat(group: string, holder: string): Promise<number>;
  close(): Promise<void>;
}

/** A holder that has not been heard of for this long no longer counts as a member of its group. */
export const FLEET_TTL_MS = 30_000;
/** Partitions buckets are spread over; each has its own header, and is one Redis Cluster hash tag. */
export const PARTITIONS = 512;
/** How far a store's clock may step back before its buckets are re-based, and a caller's idea of it may run ahead. */
export const MAX_SKEW_US: Microseconds = 100_000;
/** A call that carries something to believe and is older than this is refused (rule 7): ≥ 2 × call deadline + drift. */
export const MAX_AGE_US: Microseconds = 250_000;
/** How much later than the holder the store ends a lease: 1 % of it + maxSkew, rounded up (rule 5). */
export function leaseGrace(lease: Microseconds): Microseconds {
  return Math.ceil(lease / 100) + MAX_SKEW_US;
}

/** The partition of a bucket: FNV-1a over the UTF-16 units of policy, a zero, and key. */
export function partitionOf(policy: string, key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < policy.length; i++) hash = Math.imul(hash ^ policy.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash, 0x01000193);
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % PARTITIONS;
}
