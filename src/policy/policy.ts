import type { MicroTokens, Milliseconds, Period, Tokens } from '../units.js';

/** A token bucket as people write it: `rate` tokens per `per`, holding at most `burst`. */
export interface RateDocument {
  /** Tokens gained in each `per`; positive, at most six decimals. */
  rate: number;
  /** Most tokens the bucket holds, and so the largest cost; positive, at most six decimals. */
  burst: number;
  /** What `rate` is counted over. Default `'1s'`. */
  per?: Period;
}

/** What an instance decides while it can't reach the ceiling and its leases have run out. */
export type OutageMode = 'deny' | 'allow' | 'share';

/** `enforce` decides; `shadow` decides, reports and allows; `allow` and `deny` answer without looking. */
export type PolicyMode = 'enforce' | 'shadow' | 'allow' | 'deny';

/**
 * What becomes of the tokens in a ceiling's buckets when its terms change: `as-is` keeps them (cut to the new burst),
 * `proportional` keeps the filled fraction, `additive` adds the change of burst (may go below zero), `reset` adds one
 * full new burst, once.
 */
export type Inheritance = 'as-is' | 'proportional' | 'additive' | 'reset';

/** Other terms for one key. A tier that is left out is that of the policy. */
export interface OverrideDocument {
  local?: RateDocument;
  ceiling?: RateDocument;
  mode?: PolicyMode;
}

/** A policy as people write it and as it travels. At least one of `local` and `ceiling` is there. */
export interface PolicyDocument {
  /** 1 to 64 characters of A–Z a–z 0–9 `_` `-` `.`; a dot neither first nor last nor doubled. */
  name: string;
  /** Ever increasing; 0 (the default) for policies given in code. Publishing sets it. */
  version?: number;
  /** A bucket for each key in each instance. The fleet is bounded by N × (burst + rate·w). */
  local?: RateDocument;
  /** One bucket for each key for the whole fleet, kept in the ceiling store. The fleet is bounded by burst + rate·w. */
  ceiling?: RateDocument;
  lease?: {
    /** How long a lease may be spent, counted from before it was asked for: 50 ms to 10 min. Default 2,000. */
    durationMs?: Milliseconds;
  };
  outage?: {
    /** Default `'deny'`. */
    mode?: OutageMode;
    /** For `share`: the fleet is taken to be at least this large. Whole, positive. */
    fleet?: number;
  };
  mode?: PolicyMode;
  inheritance?: Inheritance;
  /** Terms of their own for single keys. */
  overrides?: Record<string, OverrideDocument>;
}

/** The local tier, ready for arithmetic. */
export interface LocalTerms {
  readonly ratePerMs: number;
  readonly burst: Tokens;
}

/** The ceiling tier in exact integers: `rateNum / rateDen` micro-tokens per microsecond, a reduced fraction. */
export interface CeilingTerms {
  readonly burst: MicroTokens;
  readonly rateNum: number;
  readonly rateDen: number;
}

/** All that decides about one key. */
export interface Terms {
  readonly local: LocalTerms | undefined;
  readonly ceiling: CeilingTerms | undefined;
  readonly mode: PolicyMode;
  /** Under which name the store fences these terms: the policy's, or `policy#key` for an override. */
  readonly fence: string;
}

/** An immutable, checked policy. Made by `parsePolicy`; never changed, only replaced by one of a newer version. */
export interface Policy {
  readonly name: string;
  readonly version: number;
  readonly terms: Terms;
  readonly overrides: ReadonlyMap<string, Terms>;
  readonly lease: { readonly durationMs: Milliseconds };
  readonly outage: { readonly mode: OutageMode; readonly fleet: number | undefined };
  readonly inheritance: Inheritance;
  /** What it was made from, with `version` filled in: frozen, safe to publish again. */
  readonly document: Readonly<PolicyDocument>;
}

/** The terms that hold for `key` under `policy`. */
export function termsFor(policy: Policy, key: string): Terms {
  return policy.overrides.get(key) ?? policy.terms;
}

/** Whole micro-tokens a second these terms refill, rounded down; for sizing only, never for the ledger. */
export function microTokensPerSecond(terms: CeilingTerms): number {
  return Math.floor((terms.rateNum / terms.rateDen) * 1_000_000);
}
