import type { Milliseconds } from '../units.js';

/** `Retry-After` (RFC 9110, section 10.2.3) in whole seconds: rounded up, so never too early, and 1 at least. */
export function retryAfterSeconds(retryAfterMs: Milliseconds): number {
  return Math.max(1, Math.ceil(retryAfterMs / 1_000));
}
