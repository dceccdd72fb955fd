import type { Account } from '../lease/account.js';
import type { LocalTier } from '../policy/policy.js';
import type { Milliseconds } from '../units.js';
import { freshIn, type LocalState } from './local-tier.js';

/** A key unused for this long is dropped, if its bucket is full and its wallet empty. */
export const UNUSED_MS: Milliseconds = 1_000;

/** When a key may be forgotten, if nobody asks for it until then: its local bucket is full, and its account idle for long. */
export function droppableAt(
  bucket: LocalState,
  local: LocalTier | undefined,
  account: Account | undefined,
  now: Milliseconds,
): Milliseconds {
  const fresh = local ? freshIn(bucket, local, now) : 0;
  if (fresh > 0) return now + fresh;
  if (!account) return now;
  if (!account.idle) return now + UNUSED_MS;
  if (account.attempted > 0) account.measure(now);
  return Math.max(account.blockedUntil, account.activeAt + UNUSED_MS);
}
