import type { Microseconds, MicroTokens } from '../units.js';
import type { Bucket } from './bucket.js';
import type { LeaseCall } from './ceiling-store.js';
import { untouchedLevel } from './fence.js';
import { guardedUntil } from './guard.js';
import { bucketName, type Partition } from './ledger.js';
import { lacksWindow } from './refill/fixed-window.js';
import { ruleOf } from './refill/rules.js';

/** Whose bucket is looked into. */
export type Look = Pick<LeaseCall, 'policy' | 'key' | 'fence' | 'version' | 'holder' | 'window'>;

/**
 * What the bucket of `look` has left at `now` for a holder that asks for it, on top of what it holds. Changes nothing.
 * Where a call would change more than the level first (a new bucket, era or policy), nothing is promised.
 */
export function leftIn(partition: Partition, look: Look, now: Microseconds): MicroTokens {
  const bucket = partition.buckets.get(bucketName(look));
  const fence = partition.fences.get(look.fence);
  if (!fence) return 0;
  // One that isn't there is a copy of the untouched one; what that is under windows is not kept.
  if ((!bucket || bucket.expiresAt <= now) && fence.version === look.version && !look.window) {
    return Math.max(0, untouchedLevel(fence, partition.bornAt, now).tokens);
  }
  if (!bucket || bucket.expiresAt <= now || bucket.era !== partition.era) return 0;
  if (bucket.version !== look.version || fence.version !== look.version) return 0;
  if (lacksWindow(bucket, look, now)) return 0;
  const tried = copyOf(bucket);
  const moment = { now, bornAt: partition.bornAt, until: guardedUntil(fence.guard, partition.bornAt) };
  ruleOf(look).refill(tried, look, moment);
  const keptForOthers = bucket.reservedFor !== '' && bucket.reservedFor !== look.holder ? bucket.reserved : 0;
  return Math.max(0, tried.level.tokens - keptForOthers);
}

/** The bucket, and of what it holds the parts that a refill changes. */
function copyOf(bucket: Bucket): Bucket {
  const { level, window } = bucket;
  return {
    ...bucket,
    level: { ...level },
    window: { ...window, times: [...window.times], amounts: [...window.amounts] },
  };
}
