import { InvalidOptionError, show } from '../errors.js';
import type { Decision, Limiter, PolicyLimiter } from '../index.js';
import { peek } from '../verb/one-limit.js';
import { countSoFar, failureOf, hitCountOf } from './hit-count.js';

/** How @fastify/rate-limit is answered: hits, and ms until they are forgotten. */
export type HitCallback = (error: Error | null, result?: { current: number; ttl: number }) => void;

/** What the plugin tells its store: its own options, or for a child those of one route. Not what its types say. */
interface StoreOptions {
  readonly routeInfo?: { readonly url?: string };
  readonly ban?: number;
  readonly continueExceeding?: boolean;
  readonly exponentialBackoff?: boolean;
}

/** A store of @fastify/rate-limit that asks a policy. */
export interface HeadgateStore {
  /** Takes one token of `key`, or counts as one hit too many where there is none. */
  incr(key: string, callback: HitCallback, timeWindow: number, max: number): void;
  /** Looks at the count without taking anything, for `{ increment: false }`. */
  read(key: string, callback: HitCallback, timeWindow: number, max: number): void;
  /** The store of a route that has a `rateLimit` of its own. */
  child(options: object): HeadgateStore;
}

/**
 * A policy as the `store` of @fastify/rate-limit 11: the plugin stays as it is, and the policy decides, over the
 * whole fleet.
 *
 *     await app.register(rateLimit, { max: 100, timeWindow: '1 minute', store: headgateStore(limiter, 'api') });
 *
 * `max` and `timeWindow` only say what the header fields tell. So a route that has a `rateLimit` of its own needs a policy
 * of its own.
 *
 * @param routes the policy of each such route, by its URL, such as `{ '/login': 'login' }`
 * @returns a class, as the plugin wants it; making one throws an {@link InvalidOptionError} for options it can't honour
 * @throws {UnknownPolicyError} {@link ClosedError}
 */
export function headgateStore(
  limiter: Limiter,
  policy: string,
  routes: Readonly<Record<string, string>> = {},
): new (
  options: object,
) => HeadgateStore {
  const ofPlugin = limiter.policy(policy);
  const ofRoutes = new Map(Object.entries(routes).map(([url, name]) => [url, limiter.policy(name)]));
  const policyOf = ({ routeInfo }: StoreOptions): PolicyLimiter => {
    const ofRoute = ofRoutes.get(routeInfo?.url ?? '');
    if (ofRoute) return ofRoute;
    throw new InvalidOptionError(
      `Expected a policy for each limit besides the plugin's own, got none for ${show(routeInfo?.url)}: ` +
        `headgateStore(limiter, ${show(policy)}, { '/its-url': 'its-policy' }).`,
    );
  };
  return class extends PolicyStore {
    constructor(options: object) {
      super(options, ofPlugin, policyOf);
    }
  };
}

class PolicyStore implements HeadgateStore {
  readonly #policy: PolicyLimiter;
  readonly #policyOf: (options: StoreOptions) => PolicyLimiter;

  constructor(options: StoreOptions, policy: PolicyLimiter, policyOf: (options: StoreOptions) => PolicyLimiter) {
    refuseWhatOnlyTheirStoresDo(options);
    this.#policy = policy;
    this.#policyOf = policyOf;
  }

  incr(key: string, callback: HitCallback, timeWindow: number, max: number): void {
    this.#policy.acquire(key).then((decision) => {
      const failure = failureOf(decision);
      if (failure) callback(failure);
      else callback(null, this.#resultOf(decision, key, timeWindow, max));
    }, callback);
  }

  read(key: string, callback: HitCallback, timeWindow: number, max: number): void {
    try {
      const decision = peek(this.#policy, key);
      const { hits, resetAfterMs } = countSoFar(decision, this.#policy.policy, key, max);
      // What this instance has not asked about yet is not used up, as far as it knows.
      const known = failureOf(decision) === undefined && hits > 0;
      callback(null, known ? { current: hits, ttl: resetAfterMs ?? timeWindow } : { current: 0, ttl: 0 });
    } catch (error) {
      callback(error as Error);
    }
  }

  child(options: object): HeadgateStore {
    return new PolicyStore(options, this.#policyOf(options), this.#policyOf);
  }

  #resultOf(decision: Decision, key: string, timeWindow: number, max: number): { current: number; ttl: number } {
    const { hits, resetAfterMs } = hitCountOf(decision, this.#policy.policy, key, max);
    return { current: hits, ttl: resetAfterMs ?? timeWindow };
  }
}

/** They count on after a denial, which a policy does not: left in silently, a ban would never come. */
function refuseWhatOnlyTheirStoresDo({ ban = -1, continueExceeding, exponentialBackoff }: StoreOptions): void {
  if (ban >= 0) {
    throw new InvalidOptionError(`Expected \`ban\` to be left out with a store of headgate, got ${show(ban)}.`);
  }
  if (continueExceeding || exponentialBackoff) {
    const name = continueExceeding ? 'continueExceeding' : 'exponentialBackoff';
    throw new InvalidOptionError(`Expected \`${name}\` to be left out with a store of headgate, got true.`);
  }
}
