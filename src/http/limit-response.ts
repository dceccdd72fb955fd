import type { Denied } from '../index.js';
import type { Random } from '../time.js';
import type { EpochMilliseconds, Milliseconds } from '../units.js';
import { type HeaderDialect, type HeaderFields, limitFields } from './dialects.js';
import { type ProblemDetails, problemOf } from './problem.js';
import { retryAfterSeconds } from './retry-after.js';
import type { Ruling } from './ruling.js';
import { type Standing, standingOf } from './standing.js';

/** How rulings are told to the client. All of it is checked by `checkResponseOptions`. */
export interface ResponseOptions {
  /**
   * In which dialect limits are told. `legacy` may stand next to another one, since no field is in both; an empty list
   * tells none. Default `'draft-10'`.
   */
  readonly headers?: HeaderDialect | readonly HeaderDialect[];
  /** Whether fields say which partition of the quota is meant (`pk`, a digest of the key). Default `false`. */
  readonly partition?: boolean;
  /**
   * Most that Retry-After says, in whole seconds. What is cut off makes it untrue: a client that waits so long may be
   * denied again. Default: no limit.
   */
  readonly maxRetryAfterSeconds?: number;
  /** Up to this much is added to each Retry-After at random, so that clients do not all come back at once. Default 0. */
  readonly jitterMs?: Milliseconds;
}

/** What a denied request is answered with, before any framework is involved. */
export interface LimitResponse {
  readonly status: number;
  readonly headers: Readonly<HeaderFields>;
  readonly body: string;
  /** When to come back, to the millisecond, for protocols that can say it; `undefined` as Retry-After is. */
  readonly retryAfterMs?: Milliseconds | undefined;
}

/** Clock and chance that a response depends on. */
export interface ResponseSurroundings {
  readonly wallNow: EpochMilliseconds;
  readonly random: Random;
  /** Whose turn comes when it could pass is put off by this much, as `RetrySlots` does. Default 0. */
  readonly putOffMs?: Milliseconds;
}

/** The header fields that every response carries, allowed or denied. */
export function headersFor(
  rulings: readonly Ruling[],
  { headers = 'draft-10', partition = false }: ResponseOptions,
  wallNow: EpochMilliseconds,
): HeaderFields {
  if (headers.length === 0) return {};
  const standings: Standing[] = [];
  for (const ruling of rulings) {
    const standing = standingOf(ruling, partition);
    if (standing) standings.push(standing);
  }
  if (typeof headers === 'string') return limitFields(headers, standings, wallNow);
  return Object.assign({}, ...headers.map((dialect) => limitFields(dialect, standings, wallNow)));
}

/**
 * The whole answer to a denied request; `undefined` where every ruling allows.
 *
 * 429 where the caller's quota is used up, 503 where the limiter can't tell, 403 where no waiting would help. With
 * several denials Retry-After is the longest of their times; it is left out where one of them has none.
 */
export function responseTo(
  rulings: readonly Ruling[],
  options: ResponseOptions,
  surroundings: ResponseSurroundings,
): LimitResponse | undefined {
  const denials = rulings.map(({ decision }) => decision).filter((decision) => !decision.allowed);
  if (denials.length === 0) return undefined;
  const retryAfterMs = retryAfterOf(denials, options, surroundings);
  const retryAfter = retryAfterMs === undefined ? undefined : retryAfterSeconds(retryAfterMs);
  const problem: ProblemDetails = problemOf(denials, retryAfter);
  return {
    status: problem.status,
    headers: {
      ...headersFor(rulings, options, surroundings.wallNow),
      ...(retryAfter !== undefined && { 'Retry-After': String(retryAfter) }),
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
    },
    body: JSON.stringify(problem),
    retryAfterMs,
  };
}

function retryAfterOf(
  denials: readonly Denied[],
  options: ResponseOptions,
  { random, putOffMs = 0 }: ResponseSurroundings,
): Milliseconds | undefined {
  let longest = 0;
  for (const { retryAfterMs } of denials) {
    if (retryAfterMs === undefined) return undefined;
    longest = Math.max(longest, retryAfterMs);
  }
  const { jitterMs = 0, maxRetryAfterSeconds = Number.POSITIVE_INFINITY } = options;
  return Math.min(longest + putOffMs + random() * jitterMs, maxRetryAfterSeconds * 1_000);
}
