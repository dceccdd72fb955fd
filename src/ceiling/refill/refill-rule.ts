import type { Microseconds, MicroTokens } from '../../units.js';
import type { Bucket } from '../bucket.js';
import type { LeaseCall } from '../ceiling-store.js';
import type { Fence } from '../fence.js';

/** What a call says of how time is cut. */
export type Cut = Pick<LeaseCall, 'window'>;

/** What a call says of when its refund was spent. */
export type Since = Pick<LeaseCall, 'refundSince'>;

/** What an execution knows besides the bucket. */
export interface Moment {
  readonly now: Microseconds;
  /** Birth of the partition's data; 0: nothing was there before it. */
  readonly bornAt: Microseconds;
  /** End of the guard after a loss of data (`guard.ts`); 0: nobody asks for the strict rule. */
  readonly until: Microseconds;
}

/**
 * How the tokens of a bucket come back: the part of the escrow ledger that is another one for each algorithm. T, O, the
 * holders, leases, fences and the allotment are the same for all. `level.at` is the last moment that a bucket has seen.
 * Each has its twin in `lua/`, named in its file.
 */
export interface RefillRule {
  /** All tokens come back at one moment: then there is nothing to be kept for somebody's turn. */
  readonly atOnce: boolean;
  /** Makes a new bucket what one is that nobody has touched. */
  begin(bucket: Bucket, cut: Cut, fence: Fence, moment: Moment): void;
  /** Lets come back what time gives back up to now, with the old O (rule 8). */
  refill(bucket: Bucket, cut: Cut, moment: Moment): void;
  /**
   * Takes in what this call counted as spent (`bucket.spent`) and takes back (`bucket.refund`), and holds T to what that
   * and O leave of the burst.
   */
  settle(bucket: Bucket, since: Since, moment: Moment): void;
  /** How long until T could be `head` if nobody else took any; 0: it is. At `burst` or below it always could. */
  wait(bucket: Bucket, head: MicroTokens, moment: Moment): Microseconds;
  /** What the data says may be older than what was granted: nothing is left of it. */
  suspect(bucket: Bucket, moment: Moment): void;
  /** The store's clock has stepped back further than allowed. */
  rebase(bucket: Bucket, cut: Cut, now: Microseconds): void;
  /** The bucket comes under the fence's terms. */
  adopt(bucket: Bucket, fence: Fence, now: Microseconds): void;
  /** From when on it is the same as an untouched one, if nobody calls (rule 11). */
  fullAt(bucket: Bucket, moment: Moment): Microseconds;
  /** How long a grant of `now` may be spent before `end`: up to what was asked for; 0: not long enough to be granted. */
  leaseWithin(bucket: Bucket, lease: Microseconds, now: Microseconds, end: Microseconds): Microseconds;
}
