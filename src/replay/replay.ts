import { InvalidPolicyError } from '../errors.js';
import { parsePolicy } from '../policy/parse-policy.js';
import { type CeilingTier, everyTerms, type Policy, type Terms, termsFor } from '../policy/policy.js';
import { MICRO, type Microseconds, type Tokens } from '../units.js';
import { ceilingLimit, type Limit, localLimit, type NewLimit } from './limit.js';
import { type DeniedKey, MostDenied } from './most-denied.js';
import { RecentKeys } from './recent-keys.js';
import type { LoggedRequest } from './request.js';
import { type Demand, type Sizing, TierSizing } from './tier-sizing.js';
import { Timeline } from './timeline.js';

/** Settings of a {@link Replay}. */
export interface ReplayOptions {
  /** Over how many instances requests are dealt out in turn: each has a local tier of its own. Default 1. */
  readonly instances?: number;
  /** Keys remembered. Default 200,000. */
  readonly maxKeys?: number;
}

/** What one tier did to all requests. */
export interface TierReport {
  readonly tier: 'local' | 'ceiling';
  readonly algorithm: string;
  /** Requests it denied; the local tier is asked first. */
  readonly denied: number;
  /** For token buckets, by the policy's own terms; keys with an override are left out. */
  readonly sizing: Sizing | undefined;
}

/** What a policy would have done to past requests. */
export interface ReplayReport {
  readonly policy: string;
  readonly requests: number;
  readonly admitted: number;
  readonly denied: number;
  /** Denied by the policy's mode. */
  readonly deniedByMode: number;
  /** Denied because they cost more than a tier ever holds: to be had by no waiting. */
  readonly aboveBurst: number;
  readonly offeredTokens: Tokens;
  readonly admittedTokens: Tokens;
  readonly tiers: readonly TierReport[];
  readonly mostDenied: readonly DeniedKey[];
  /** Keys met, those counted again that came back after they had been forgotten. */
  readonly keys: number;
  /** Of those forgotten to make room: keys whose limits were not as good as new, so that more was let through. */
  readonly keysForgotten: number;
  readonly from: Microseconds | undefined;
  readonly to: Microseconds | undefined;
  readonly timeline: {
    readonly every: Microseconds;
    readonly admitted: readonly number[];
    readonly denied: readonly number[];
  };
}

/** One tier of one set of terms. */
interface ReplayedTier {
  readonly newLimit: NewLimit;
  readonly sizing: TierSizing | undefined;
}

/** One key's limit in one tier, at one instance or for the fleet. */
interface TierState {
  readonly limit: Limit;
  readonly demand: Demand | undefined;
}

/** All tiers of one set of terms. */
interface ReplayedTerms {
  readonly terms: Terms;
  readonly local: ReplayedTier | undefined;
  readonly ceiling: ReplayedTier | undefined;
}

interface KeyState {
  readonly under: ReplayedTerms;
  /** By instance. */
  readonly local: (TierState | undefined)[];
  readonly ceiling: TierState | undefined;
}

const DEFAULT_MAX_KEYS = 200_000;
const DENIED_KEPT = 10_000;
const DENIED_SHOWN = 10;
const SPANS = 480;

/**
 * Decides past requests by a policy as it would have been decided then: in every tier or in none, the local one first,
 * a fleet's ceiling as one exact bucket. Takes as much memory for gigabytes as for a page.
 */
export class Replay {
  readonly #policy: Policy;
  readonly #instances: number;
  readonly #default: ReplayedTerms;
  readonly #overrides: ReadonlyMap<Terms, ReplayedTerms>;
  readonly #keys: RecentKeys<KeyState>;
  readonly #mostDenied = new MostDenied(DENIED_KEPT);
  readonly #timeline = new Timeline(SPANS);
  #now: Microseconds = Number.NEGATIVE_INFINITY;
  #turn = 0;
  #requests = 0;
  #admitted = 0;
  #denied = { local: 0, ceiling: 0, policy: 0 };
  #aboveBurst = 0;
  #offeredTokens: Tokens = 0;
  #admittedTokens: Tokens = 0;
  #keysMet = 0;
  #keysForgotten = 0;

  /** @throws InvalidPolicyError where a tier has an algorithm that can't be replayed. */
  constructor(policy: Policy, { instances = 1, maxKeys = DEFAULT_MAX_KEYS }: ReplayOptions = {}) {
    this.#policy = policy;
    this.#instances = instances;
    const { local, ceiling } = policy.terms;
    if (!local && !ceiling)
      throw new InvalidPolicyError('Expected a policy with `local` or `ceiling` to replay, got one with neither.');
    this.#default = replayed(policy.terms, {
      local: local?.algorithm === 'token-bucket' ? new TierSizing(localInExactTerms(policy)) : undefined,
      ceiling: ceiling?.algorithm === 'token-bucket' ? new TierSizing(ceiling) : undefined,
    });
    this.#overrides = new Map(everyTerms(policy).map((terms) => [terms, replayed(terms, {})])).set(
      policy.terms,
      this.#default,
    );
    this.#keys = new RecentKeys(maxKeys, (states) => {
      for (const state of states) if (!isUntouched(state, this.#now)) this.#keysForgotten += 1;
    });
  }

  /** Decides one request. One that is earlier than the last counts as of then. */
  decide({ key, cost, at }: LoggedRequest): boolean {
    const now = Math.max(this.#now, at);
    this.#now = now;
    this.#requests += 1;
    this.#offeredTokens += cost;
    const deniedBy = this.#deniedBy(key, cost, now);
    this.#timeline.count(deniedBy === undefined, now);
    if (deniedBy === undefined) {
      this.#admitted += 1;
      this.#admittedTokens += cost;
      return true;
    }
    this.#denied[deniedBy] += 1;
    this.#mostDenied.add(key);
    return false;
  }

  report(): ReplayReport {
    const { local, ceiling, policy } = this.#denied;
    const { from, every, admitted, denied } = this.#timeline;
    const { terms } = this.#default;
    const tiers = (['local', 'ceiling'] as const).flatMap((tier): TierReport[] => {
      const { algorithm } = terms[tier] ?? {};
      if (algorithm === undefined) return [];
      return [{ tier, algorithm, denied: this.#denied[tier], sizing: this.#default[tier]?.sizing?.result }];
    });
    return {
      policy: this.#policy.name,
      requests: this.#requests,
      admitted: this.#admitted,
      denied: local + ceiling + policy,
      deniedByMode: policy,
      aboveBurst: this.#aboveBurst,
      offeredTokens: this.#offeredTokens,
      admittedTokens: this.#admittedTokens,
      tiers,
      mostDenied: this.#mostDenied.top(DENIED_SHOWN),
      keys: this.#keysMet,
      keysForgotten: this.#keysForgotten,
      from,
      to: from === undefined ? undefined : this.#now,
      timeline: { every, admitted, denied },
    };
  }

  /** What denies the request; `undefined`: nothing does, and every tier has been charged. */
  #deniedBy(key: string, cost: Tokens, now: Microseconds): 'local' | 'ceiling' | 'policy' | undefined {
    const state = this.#find(key, now);
    const { terms } = state.under;
    const local = this.#localState(state, now);
    // Seen whatever is decided: a size is to fit all that came.
    if (local?.demand) state.under.local?.sizing?.see(local.demand, cost, now);
    if (state.ceiling?.demand) state.under.ceiling?.sizing?.see(state.ceiling.demand, cost, now);
    if (terms.mode === 'allow') return undefined;
    if (terms.mode === 'deny') return 'policy';
    const deniedBy =
      local?.limit.has(cost, now) === false
        ? 'local'
        : state.ceiling?.limit.has(cost, now) === false
          ? 'ceiling'
          : undefined;
    if (deniedBy === undefined) {
      local?.limit.take(cost, now);
      state.ceiling?.limit.take(cost, now);
    } else if (cost > largestCost(terms)) {
      this.#aboveBurst += 1;
    }
    return deniedBy;
  }

  #find(key: string, now: Microseconds): KeyState {
    let state = this.#keys.get(key);
    if (!state) {
      const under = this.#overrides.get(termsFor(this.#policy, key)) ?? this.#default;
      state = { under, local: [], ceiling: opened(under.ceiling, now) };
      this.#keys.add(key, state);
      this.#keysMet += 1;
    }
    return state;
  }

  /** The local tier of the instance whose turn it is. */
  #localState({ under, local }: KeyState, now: Microseconds): TierState | undefined {
    const turn = this.#turn;
    this.#turn = (turn + 1) % this.#instances;
    if (!under.local) return undefined;
    local[turn] ??= opened(under.local, now);
    return local[turn];
  }
}

function replayed(
  terms: Terms,
  sizing: { local?: TierSizing | undefined; ceiling?: TierSizing | undefined },
): ReplayedTerms {
  const { local, ceiling } = terms;
  return {
    terms,
    local: local && { newLimit: localLimit(local), sizing: sizing.local },
    ceiling: ceiling && { newLimit: ceilingLimit(ceiling), sizing: sizing.ceiling },
  };
}

function opened(tier: ReplayedTier | undefined, now: Microseconds): TierState | undefined {
  return tier && { limit: tier.newLimit(now), demand: tier.sizing?.newDemand(now) };
}

function isUntouched({ under, local, ceiling }: KeyState, now: Microseconds): boolean {
  const { ceiling: ofFleet, local: ofInstance } = under;
  return isNew(ceiling, ofFleet, now) && local.every((state) => isNew(state, ofInstance, now));
}

/** Whether a tier's state is as good as a new one, for what it decides and for what its size is computed from. */
function isNew(state: TierState | undefined, tier: ReplayedTier | undefined, now: Microseconds): boolean {
  if (!state) return true;
  const { limit, demand } = state;
  return limit.isUntouched(now) && (demand === undefined || tier?.sizing?.isUntouched(demand, now) === true);
}

function largestCost({ local, ceiling }: Terms): Tokens {
  return Math.min(local?.burst ?? Number.POSITIVE_INFINITY, ceiling ? ceiling.burst / MICRO : Number.POSITIVE_INFINITY);
}

/** The local tier's terms as whole numbers: sizes are computed exactly for both tiers. */
function localInExactTerms({ name, document: { local } }: Policy): CeilingTier {
  const { ceiling } = termsFor(parsePolicy({ name, ceiling: local }), '');
  return ceiling as CeilingTier;
}
