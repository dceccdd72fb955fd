import type { Microseconds, MicroTokens } from '../units.js';
import type { LeaseCall } from './ceiling-store.js';
import { untouchedLevel } from './fence.js';
import { guardedUntil, refillGuarded } from './guard.js';
import { bucketName, type Partition } from './ledger.js';

/** Whose bucket is looked into. */
export type Look = Pick<LeaseCall, 'policy' | 'key' | 'fence' | 'version' | 'holder'>;

/**
 * What the bucket of `look` has left at `now` for a holder that asks for it, on top of what it holds. Changes nothing.
 * Where a call would change more than the level first (a new bucket, era or policy), nothing is promised.
 */
export function leftIn(partition: Partition, look: Look, now: Microseconds): MicroTokens {
  const bucket = partition.buckets.get(bucketName(look));
  const fence = partition.fences.get(look.fence);
  if (!fence) return 0;
  // One that isn't there is a copy of the untouched one.
  if ((!bucket || bucket.expiresAt <= now) && fence.version === look.version) {
    return Math.max(0, untouchedLevel(fence, partition.bornAt, now).tokens);
  }
  if (!bucket || bucket.era !== partition.era) return 0;
  if (bucket.version !== look.version || fence.version !== look.version) return 0;
  const level = { ...bucket.level };
  refillGuarded(level, now, bucket, bucket.outstanding, guardedUntil(fence.guard, partition.bornAt));
  const keptForOthers = bucket.reservedFor !== '' && bucket.reservedFor !== look.holder ? bucket.reserved : 0;
  return Math.max(0, level.tokens - keptForOthers);
}
