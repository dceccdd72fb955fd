import { InvalidOptionError } from '../errors.js';
import type { Decision, Limiter, PolicyLimiter } from '../index.js';
import { systemTime } from '../time.js';
import { failureOf, hitCountOf } from './hit-count.js';

/** What express-rate-limit asks of a store for one request. */
export interface ClientRateLimitInfo {
  /** Above the middleware's `limit` exactly where the request is denied. */
  totalHits: number;
  resetTime: Date | undefined;
}

/**
 * A policy as the `store` of express-rate-limit 7 and 8: the middleware stays as it is, and the policy decides, over the
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

  /** @throws {UnknownPolicyError} {@link ClosedError} */
  constructor(limiter: Limiter, policy: string) {
    this.#policy = limiter.policy(policy);
    this.prefix = `${policy}/`;
  }

  /** Called by the middleware with its options. A `limit` that is a function is not known before each request. */
  init({ limit }: { readonly limit: unknown }): void {
    this.#limit = typeof limit === 'number' ? limit : undefined;
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
    return this.#infoOf(decision, key);
  }

  /** @throws {InvalidOptionError} always: what a request has taken is not given back after its response. */
  async decrement(_key: string): Promise<void> {
    throw new InvalidOptionError(
      'Expected `skipFailedRequests` and `skipSuccessfulRequests` to be left out with a store of headgate, got one of them.',
    );
  }

  /** @throws {InvalidOptionError} always: a bucket is not filled by hand. */
  async resetKey(_key: string): Promise<void> {
    throw new InvalidOptionError('Expected no `resetKey` with a store of headgate: publish an override for the key.');
  }

  #infoOf(decision: Decision, key: string): ClientRateLimitInfo {
    const { hits, resetAfterMs } = hitCountOf(decision, this.#policy.policy, key, this.#limit);
    const resetTime = resetAfterMs === undefined ? undefined : new Date(systemTime.wallNow() + resetAfterMs);
    return { totalHits: hits, resetTime };
  }
}
