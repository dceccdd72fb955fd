import { createHash } from 'node:crypto';
import { termsFor } from '../policy/policy.js';
import type { Milliseconds, Tokens } from '../units.js';
import { type Quota, quotaOf, secondsFor } from './quota.js';
import { retryAfterSeconds } from './retry-after.js';
import type { Ruling } from './ruling.js';

/** Where a client stands under one policy: the numbers that header fields are made of, all whole and in seconds. */
export interface Standing {
  readonly name: string;
  readonly quota: Quota;
  readonly denied: boolean;
  /** Tokens to be had; `undefined` where this process doesn't know. Never too many. */
  readonly remaining: Tokens | undefined;
  /** The span over which `remaining` may be used: no faster than the policy's rate. `undefined` where nobody knows. */
  readonly windowSeconds: number | undefined;
  /** After a denial: when to come back. Otherwise: when all of the quota is there. */
  readonly resetSeconds: number | undefined;
  /** Which part of the quota this is, as bytes that say nothing about the key. */
  readonly partition: Uint8Array | undefined;
  readonly cost: Tokens;
}

/**
 * The standing that a ruling comes to; `undefined` where there is none to show: the policy's mode decided, or it is a
 * shadow policy, whose limits are not the client's.
 */
export function standingOf(ruling: Ruling, withPartition: boolean): Standing | undefined {
  const { decision, policy, key, cost } = ruling;
  const terms = termsFor(policy, key);
  const quota = quotaOf(terms);
  if (quota === undefined || terms.mode === 'shadow') return undefined;
  return {
    name: policy.name,
    quota,
    denied: !decision.allowed,
    cost,
    partition: withPartition ? partitionOf(policy.name, key) : undefined,
    ...(decision.allowed ? allowedFigures(ruling, quota) : deniedFigures(decision, quota)),
  };
}

type Figures = Pick<Standing, 'remaining' | 'windowSeconds' | 'resetSeconds'>;

function allowedFigures({ decision }: Ruling, quota: Quota): Figures {
  const { tokensPerSecond } = quota;
  // Of a ceiling elsewhere only what is in hand is known. None in hand is no reason for a client to hold back.
  if (decision.resetAfterMs === undefined && decision.remaining < 1) {
    return { remaining: undefined, windowSeconds: undefined, resetSeconds: undefined };
  }
  const remaining = Math.min(quota.tokens, Math.floor(decision.remaining));
  const resetMs = decision.resetAfterMs ?? ((quota.tokens - remaining) / tokensPerSecond) * 1_000;
  return {
    remaining,
    windowSeconds: secondsFor(Math.max(1, remaining), tokensPerSecond),
    // Rounded up to whole ms already: what is one ms over a second is that, and not a second more.
    resetSeconds: Math.ceil((resetMs - 1) / 1_000),
  };
}

/**
 * After a denial every span ends when the client should come back, since Retry-After must not be earlier than they do;
 * and no more is offered for it than the rate has in it, which may be less than what is there.
 */
function deniedFigures(
  decision: { readonly remaining: Tokens; readonly retryAfterMs?: Milliseconds | undefined },
  quota: Quota,
): Figures {
  if (decision.retryAfterMs === undefined) return { remaining: 0, windowSeconds: undefined, resetSeconds: undefined };
  const seconds = retryAfterSeconds(decision.retryAfterMs);
  const most = Math.floor(seconds * quota.tokensPerSecond);
  return {
    remaining: Math.min(quota.tokens, Math.floor(decision.remaining), most),
    windowSeconds: seconds,
    resetSeconds: seconds,
  };
}

/** 72 bits of a digest: enough to tell a client's partitions apart, and no key in it. */
function partitionOf(policy: string, key: string): Uint8Array {
  return createHash('sha256').update(`${policy}\0${key}`, 'utf8').digest().subarray(0, 9);
}
