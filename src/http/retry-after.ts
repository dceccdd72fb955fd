import type { Random } from '../time.js';
import type { Milliseconds, Tokens } from '../units.js';

/** How a crowd that was denied together is told to come back one after the other. */
export interface Spread {
  /** Tokens that those wait for who were denied and are still to come back. */
  readonly backlog: Tokens;
  /** Tokens the limit gains in a second. */
  readonly tokensPerSecond: number;
  /** Most that is added, however long the backlog. Default 60,000. */
  readonly mostMs?: Milliseconds;
}

/**
 * A time to come back at, later than `retryAfterMs` by a random part of the time it takes to serve the backlog: with
 * everybody back at the first moment, all but one would be denied again. Never earlier, so it is as true as it was.
 *
 *     spreadMs(400, { backlog: 50, tokensPerSecond: 100 }, Math.random); // 400 to 900
 */
export function spreadMs(retryAfterMs: Milliseconds, spread: Spread, random: Random): Milliseconds {
  const { backlog, tokensPerSecond, mostMs = 60_000 } = spread;
  const drainMs = tokensPerSecond > 0 ? (Math.max(0, backlog) / tokensPerSecond) * 1_000 : 0;
  return retryAfterMs + random() * Math.min(mostMs, drainMs);
}

/** `Retry-After` (RFC 9110, section 10.2.3) in whole seconds: rounded up, so never too early, and 1 at least. */
export function retryAfterSeconds(retryAfterMs: Milliseconds): number {
  return Math.max(1, Math.ceil(retryAfterMs / 1_000));
}
