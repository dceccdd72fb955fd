import type { Terms } from '../index.js';
import { MICRO, type Tokens } from '../units.js';

/** A policy as a client may know it: so many tokens in so many seconds. */
export interface Quota {
  /** Most that can pass at once, whole. */
  readonly tokens: Tokens;
  /** Whole seconds, 1 at least, in which that many tokens are gained. */
  readonly windowSeconds: number;
  readonly tokensPerSecond: number;
}

/**
 * The quota that terms come to: the smallest burst and the lowest rate of the tiers, so that who keeps to it is denied by
 * none of them. `undefined` where the mode decides and no bucket is looked at.
 */
export function quotaOf({ local, ceiling, mode }: Terms): Quota | undefined {
  if (mode === 'allow' || mode === 'deny') return undefined;
  let burst = Number.POSITIVE_INFINITY;
  let tokensPerSecond = Number.POSITIVE_INFINITY;
  if (local) {
    burst = local.burst;
    tokensPerSecond = local.ratePerMs * 1_000;
  }
  if (ceiling) {
    burst = Math.min(burst, ceiling.burst / MICRO);
    // Micro-tokens per microsecond are tokens per second.
    tokensPerSecond = Math.min(tokensPerSecond, ceiling.rateNum / ceiling.rateDen);
  }
  const tokens = Math.floor(burst);
  return { tokens, tokensPerSecond, windowSeconds: secondsFor(tokens, tokensPerSecond) };
}

/** Whole seconds, 1 at least, in which `tokens` are gained. */
export function secondsFor(tokens: Tokens, tokensPerSecond: number): number {
  const seconds = tokens / tokensPerSecond;
  // 0.3 ÷ 0.1 is a hair above 3, and 4 would be wrong.
  const whole = Math.round(seconds);
  return Math.max(1, Math.abs(seconds - whole) <= whole * 4 * Number.EPSILON ? whole : Math.ceil(seconds));
}
