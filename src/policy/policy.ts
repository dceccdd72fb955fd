import type { CalendarUnit } from '../calendar.js';
import type { Microseconds, MicroTokens, Milliseconds, Period, Tokens } from '../units.js';
import { matches, type Pattern } from './pattern.js';

/** A token bucket as people write it: `rate` tokens per `per`, holding at most `burst`. */
export interface RateDocument {
  algorithm?: 'token-bucket';
  /** Tokens gained in each `per`; positive, at most six decimals. */
  rate: number;
  /** Most tokens the bucket holds, and so the largest cost; positive, at most six decimals. */
  burst: number;
  /** What `rate` is counted over. Default `'1s'`. */
  per?: Period;
}

/** A leaky bucket: requests leave evenly, a cost of one every `per / rate`; who would wait behind more is denied. */
export interface LeakyBucketDocument {
  algorithm: 'leaky-bucket';
  /** Tokens that leave in each `per`; positive, at most six decimals. */
  rate: number;
  per?: Period;
  /** Most tokens' worth of requests that wait to leave, and so the largest cost (or 1); 0 or more, six decimals. */
  queue: number;
}

/** At most `limit` in each window; twice that may pass around the moment between two of them. */
export interface FixedWindowDocument {
  algorithm: 'fixed-window';
  /** Tokens a window; positive, at most six decimals. */
  limit: number;
  /** A length, or a part of the calendar in `timeZone`. */
  window: Period | CalendarUnit;
  /** An IANA name, for a part of the calendar only. Default `'UTC'`. */
  timeZone?: string;
  /** Where windows of a length begin: at multiples of it since 1970 (`'calendar'`, the default), or at the first use. */
  align?: 'calendar' | 'first-use';
}

/** At most `limit` in every window of this length: exactly (`log`), or as two counts estimate it (`counter`). */
export interface SlidingWindowDocument {
  algorithm: 'sliding-window-log' | 'sliding-window-counter';
  /** Tokens a window; positive, at most six decimals. */
  limit: number;
  window: Period;
}

/** One tier of a policy as people write it; a token bucket where `algorithm` is left out. */
export type TierDocument = RateDocument | LeakyBucketDocument | FixedWindowDocument | SlidingWindowDocument;

/** How many may be in flight at once for a key, over the whole fleet. */
export interface ConcurrencyDocument {
  /** Most seats; whole, positive. */
  limit: number;
  /** An instance that the store has not heard of for this long has left its seats: 1 s to 10 min. Default 10,000. */
  lostAfterMs?: Milliseconds;
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

/**
 * What a ceiling does once its store has lost its data, while wallets hold what it has not heard of: `quick` gives out
 * what refill earns, at once; `strict` keeps a part of the burst for those wallets, for one lease.
 */
export type StoreLoss = 'quick' | 'strict';

/** Other terms for one key. A tier that is left out is that of the policy. */
export interface OverrideDocument {
  local?: TierDocument;
  ceiling?: TierDocument;
  concurrency?: ConcurrencyDocument;
  mode?: PolicyMode;
}

/** A policy as people write it and as it travels. At least one of `local`, `ceiling`, `concurrency` is there. */
export interface PolicyDocument {
  /** 1 to 64 characters of A–Z a–z 0–9 `_` `-` `.`; a dot neither first nor last nor doubled. */
  name: string;
  /** Ever increasing; 0 (the default) for policies given in code. Publishing sets it. */
  version?: number;
  /** A limit for each key in each instance: a token bucket lets the fleet do N × (burst + rate·w). */
  local?: TierDocument;
  /** One limit for each key for the whole fleet, kept in the ceiling store: a token bucket bounds it by burst + rate·w. */
  ceiling?: TierDocument;
  /** Seats for what is in flight, taken with `enter`. */
  concurrency?: ConcurrencyDocument;
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
  /** Default `'quick'`. Of limiters that disagree under one version, the strict ones win. */
  storeLoss?: StoreLoss;
  /** Keys that pass, and keys that don't, without a look at any bucket: as overrides of these modes. With `*` as there. */
  allow?: string[];
  deny?: string[];
  /**
   * Terms of their own for single keys, or for all that a text with `*` stands for (any characters, none included; `\*` is
   * a star). A key that is named itself comes before all patterns, and of these the one with the most literal characters.
   */
  overrides?: Record<string, OverrideDocument>;
}

/** How time is cut into fixed windows. `length` is that of each, of a part of the calendar the usual one (30 days). */
export type Windows =
  | { readonly by: 'epoch' | 'first-use'; readonly length: Microseconds }
  | {
      readonly by: 'calendar';
      readonly unit: CalendarUnit;
      readonly timeZone: string;
      readonly length: Microseconds;
    };

/** What one algorithm is told besides its burst and its rate. */
export type AlgorithmTerms =
  | { readonly algorithm: 'token-bucket' }
  | { readonly algorithm: 'leaky-bucket'; readonly queue: Tokens }
  | { readonly algorithm: 'fixed-window'; readonly windows: Windows }
  | { readonly algorithm: 'sliding-window-log' | 'sliding-window-counter'; readonly length: Microseconds };

export type Algorithm = AlgorithmTerms['algorithm'];

/**
 * What every algorithm of the local tier has, ready for arithmetic: the most that can pass at once, and the average.
 * A window's `burst` is its limit, and `ratePerMs` that over its length; a leaky bucket's `burst` is its largest cost.
 */
export interface LocalTerms {
  readonly ratePerMs: number;
  readonly burst: Tokens;
}

/** The same for the ceiling in exact integers: `rateNum / rateDen` micro-tokens per microsecond, a reduced fraction. */
export interface CeilingTerms {
  readonly burst: MicroTokens;
  readonly rateNum: number;
  readonly rateDen: number;
}

/** A tier's terms: told apart by `algorithm`. */
export type LocalTier = LocalTerms & AlgorithmTerms;
export type CeilingTier = CeilingTerms & AlgorithmTerms;

/** The seats of a key. */
export interface ConcurrencyTerms {
  readonly limit: number;
  readonly lostAfterMs: Milliseconds;
}

/** All that decides about one key. */
export interface Terms {
  readonly local: LocalTier | undefined;
  readonly ceiling: CeilingTier | undefined;
  readonly concurrency: ConcurrencyTerms | undefined;
  readonly mode: PolicyMode;
  /** Under which name the store fences these terms: the policy's, or `policy#key` for an override, as it is written. */
  readonly fence: string;
}

/** Terms of their own for all keys that a pattern stands for. */
export interface PatternTerms {
  readonly pattern: Pattern;
  readonly terms: Terms;
}

/** An immutable, checked policy. Made by `parsePolicy`; never changed, only replaced by one of a newer version. */
export interface Policy {
  readonly name: string;
  readonly version: number;
  readonly terms: Terms;
  readonly overrides: ReadonlyMap<string, Terms>;
  /** The most exact first. */
  readonly patterns: readonly PatternTerms[];
  readonly lease: { readonly durationMs: Milliseconds };
  readonly outage: { readonly mode: OutageMode; readonly fleet: number | undefined };
  readonly inheritance: Inheritance;
  readonly storeLoss: StoreLoss;
  /** What it was made from, with `version` filled in: frozen, safe to publish again. */
  readonly document: Readonly<PolicyDocument>;
}

/** Whether the ceiling is a leaky bucket: its store gives out slots to wait for, and lends no tokens. */
export function isPaced({ ceiling }: Terms): boolean {
  return ceiling?.algorithm === 'leaky-bucket';
}

/** Whether there is a ceiling whose store lends tokens. */
export function isLeased(terms: Terms): boolean {
  return terms.ceiling !== undefined && !isPaced(terms);
}

/** The terms that hold for `key` under `policy`. */
export function termsFor(policy: Policy, key: string): Terms {
  const exact = policy.overrides.get(key);
  if (exact !== undefined) return exact;
  for (const { pattern, terms } of policy.patterns) if (matches(pattern, key)) return terms;
  return policy.terms;
}

/** All terms there are under `policy`: its own, and those of its overrides. */
export function everyTerms({ terms, overrides, patterns }: Policy): readonly Terms[] {
  return [terms, ...overrides.values(), ...patterns.map((pattern) => pattern.terms)];
}

/** Whole micro-tokens a second these terms refill, rounded down; for sizing only, never for the ledger. */
export function microTokensPerSecond(terms: CeilingTerms): number {
  return Math.floor((terms.rateNum / terms.rateDen) * 1_000_000);
}
