import { InvalidOptionError } from '../errors.js';
import type { Limiter, PolicyLimiter } from '../index.js';
import { systemTime } from '../time.js';
import { peek, refund } from '../verb/one-limit.js';
import { countSoFar, failureOf, type HitCount, hitCountOf } from './hit-count.js';

/** What express-rate-limit asks of a store for one request. */
export interface ClientRateLimitInfo {
  /** Above the middleware's `limit` exactly where the request is denied. */
  totalHits: number;
  resetTime: Date | undefined;
}

/** Of the options of express-rate-limit, those that a store has to know. */
export interface MiddlewareOptions {
  readonly limit: unknown;
  readonly statusCode?: number;
  readonly skipFailedRequests?: boolean;
  readonly skipSuccessfulRequests?: boolean;
}

/**
 * A policy as the `store` of express-rate-limit 8: the middleware stays as it is, and the policy decides, over the
 * whole fleet.
 *
 *     app.use(rateLimit({ windowMs: 60_000, limit: 100, store: new HeadgateStore(limiter, 'api') }));
 *
 * `limit` and `windowMs` only say what the header fields tell. Each middleware needs a store of its own.
 */
export class HeadgateStore {
  /** Other instances of the service draw from the same ceiling. */
  readonly localKeys = false;
  /** Tells the middleware that one key under two policies is not counted twice. */
  readonly prefix: string;
  readonly #policy: PolicyLimiter;
  #limit: number | undefined;
  #givesBack = false;

  /** @throws {UnknownPolicyError} {@link ClosedError} */
  constructor(limiter: Limiter, policy: string) {
    this.#policy = limiter.policy(policy);
    this.prefix = `${policy}/`;
  }

  /**
   * Called by the middleware with its options. A `limit` that is a function is not known before each request.
   *
   * @throws {InvalidOptionError} where {@link decrement} would be called for requests that were denied. They have taken
   * nothing, and it is not told which request it is about: giving back would let any number of others pass.
   */
  init({ limit, statusCode = 429, skipFailedRequests, skipSuccessfulRequests }: MiddlewareOptions): void {
    this.#limit = typeof limit === 'number' ? limit : undefined;
    const denialsSucceed = skipSuccessfulRequests && statusCode < 400;
    this.#givesBack = Boolean(skipSuccessfulRequests) && !skipFailedRequests && !denialsSucceed;
    if (skipFailedRequests || denialsSucceed) {
      const name = skipFailedRequests ? 'skipFailedRequests' : 'skipSuccessfulRequests';
      const why = skipFailedRequests ? '' : ` together with a \`statusCode\` of ${statusCode}`;
      throw new InvalidOptionError(`Expected \`${name}\` to be left out with a store of headgate${why}, got true.`);
    }
  }

  /**
   * Takes one token of `key`, or counts as one hit too many where there is none.
   *
   * @throws {CeilingError} where the ceiling can't be asked and the policy's outage mode denies: `passOnStoreError` decides
   */
  async increment(key: string): Promise<ClientRateLimitInfo> {
    const decision = await this.#policy.acquire(key);
    const failure = failureOf(decision);
    if (failure) throw failure;
    return infoOf(hitCountOf(decision, this.#policy.policy, key, this.#limit));
  }

  /**
   * Gives a token back, for `skipSuccessfulRequests`, as far as a refund does.
   *
   * @throws {InvalidOptionError} where {@link init} was not told of that option, or refused it
   */
  async decrement(key: string): Promise<void> {
    if (!this.#givesBack) {
      throw new InvalidOptionError(
        'Expected a middleware with `skipSuccessfulRequests`, got one that gives back without.',
      );
    }
    refund(this.#policy, key);
  }

  /** Looks at the count without taking anything; `undefined` where there is none, or this instance does not know it. */
  async get(key: string): Promise<ClientRateLimitInfo | undefined> {
    const decision = peek(this.#policy, key);
    if (failureOf(decision)) return undefined;
    const count = countSoFar(decision, this.#policy.policy, key, this.#limit);
    return count.hits === 0 ? undefined : infoOf(count);
  }

  /**
   * Makes a key as if it had never been asked for, over the whole fleet.
   *
   * @throws {CeilingError} where the store could not be told
   */
  resetKey(key: string): Promise<void> {
    return this.#policy.reset(key);
  }
}

function infoOf({ hits, resetAfterMs }: HitCount): ClientRateLimitInfo {
  const resetTime = resetAfterMs === undefined ? undefined : new Date(systemTime.wallNow() + resetAfterMs);
  return { totalHits: hits, resetTime };
}
