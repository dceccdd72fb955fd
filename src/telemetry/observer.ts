import type { Milliseconds, Tokens } from '../units.js';

/** Which tier denied: `policy` where its mode, an override or a block did, before any bucket was looked at. */
export type LimitedBy = 'local' | 'ceiling' | 'policy';

/** Why a call was denied. `docs/reference/decisions.md` explains each. */
export type DenialReason =
  /** The tier's bucket (local), or what the fleet has left (ceiling), is less than the cost. */
  | 'empty'
  /** Nothing has been leased for this key yet; a lease is being fetched. */
  | 'cold'
  /** The lease passed its end unspent, and the next one is not here yet. */
  | 'expired'
  /** The ceiling store is out of reach, and the outage mode denies. */
  | 'degraded'
  /** The key shares the overflow bucket (the bound on keys is reached), and that is empty. */
  | 'overflow'
  /** The cost is above the burst of a published policy, so it can't pass under these terms. */
  | 'cost-above-burst'
  /** The policy's mode, or the key's override, denies everything. */
  | 'denied-by-policy'
  /** The limiter was closed while the call waited. */
  | 'closed'
  /** As many wait for this key as the call's `maxQueued`, or the queue of a leaky bucket, allows. */
  | 'queue-full'
  /** The ceiling is a leaky bucket, and only `acquire` waits for a slot of it. */
  | 'paced'
  /** The key has been blocked, fleet-wide, until `retryAfterMs` from now. */
  | 'blocked';

/** Plain counters of one policy in one limiter. Only ever added to; read by whoever listens. */
export interface PolicyCounters {
  readonly policy: string;
  allowed: number;
  /** Allowed by the outage mode `allow` or `share`: part of `allowed`. */
  allowedDegraded: number;
  deniedLocal: number;
  deniedCeiling: number;
  deniedPolicy: number;
  /** Calls that a block denied, or would have under a shadow policy: part of `deniedPolicy`, or of `shadowDenied`. */
  deniedBlocked: number;
  /** Calls that a shadow policy would have denied; they are in `allowed`. */
  shadowDenied: number;
  /** Decisions made on the shared overflow bucket. */
  overflow: number;
  tokensGranted: Tokens;
  tokensSpent: Tokens;
  tokensReturned: Tokens;
  /** Dropped at the end of their lease, on suspicion of a suspend, or with a reply that came too late. */
  tokensExpired: Tokens;
  /** Spent without a lease, under an outage mode. */
  tokensUnleased: Tokens;
  /** All of them, those that failed or were refused included. */
  leaseCalls: number;
  leaseFailures: number;
  leaseRefusals: number;
  /** Replies that reported other terms under the same version. */
  termConflicts: number;
  /** Calls of `enter` that got a seat. */
  seatsTaken: number;
  /** Those that got none. */
  seatsRefused: number;
  /** Those that a shadow policy let in without one. */
  seatsShadowRefused: number;
}

export type CounterName = Exclude<keyof PolicyCounters, 'policy'>;

/** Where all counters begin. */
export const NO_COUNTS: Readonly<Record<CounterName, 0>> = {
  allowed: 0,
  allowedDegraded: 0,
  deniedLocal: 0,
  deniedCeiling: 0,
  deniedPolicy: 0,
  deniedBlocked: 0,
  shadowDenied: 0,
  overflow: 0,
  tokensGranted: 0,
  tokensSpent: 0,
  tokensReturned: 0,
  tokensExpired: 0,
  tokensUnleased: 0,
  leaseCalls: 0,
  leaseFailures: 0,
  leaseRefusals: 0,
  termConflicts: 0,
  seatsTaken: 0,
  seatsRefused: 0,
  seatsShadowRefused: 0,
};

/** What instruments read, at the moment they are read. */
export interface PolicyGauges {
  readonly policy: string;
  readonly version: number;
  /** Tokens in this instance's live wallets. */
  readonly tokensHeld: Tokens;
  readonly keys: number;
  readonly waiting: number;
  /** Seats in use at this instance. */
  readonly seats: number;
  /** Keys that this instance knows to be blocked. */
  readonly blocked: number;
  readonly degraded: boolean;
}

/** The state of a limiter, for instruments that are read now and then. */
export interface Readings {
  readonly instanceId: string;
  counters(): Iterable<Readonly<PolicyCounters>>;
  gauges(): Iterable<PolicyGauges>;
}

/** One round trip to the ceiling store, carrying the calls of one tick. */
export interface RoundTripStart {
  /** The policies the calls belong to, each once. Never a key. */
  readonly policies: readonly string[];
  readonly calls: number;
  readonly need: Tokens;
  readonly want: Tokens;
}

export interface RoundTripEnd {
  readonly durationMs: Milliseconds;
  readonly granted: Tokens;
  readonly failed: number;
  /** The first failure, where there was one. */
  readonly error?: Error;
}

/** A policy change that reached this limiter. */
export interface PolicyChange {
  readonly policy: string;
  readonly version: number;
  readonly previousVersion: number | undefined;
  /** `applied`; `ignored` (not newer); `invalid` (the last good one stays); `removed` (likewise). */
  readonly outcome: 'applied' | 'ignored' | 'invalid' | 'removed';
  readonly via: 'snapshot' | 'watch' | 'hint' | 'code';
  /** Publisher's wall clock to ours, where the publisher's is known. */
  readonly lagMs: Milliseconds | undefined;
  readonly trace: Readonly<Record<string, string>> | undefined;
  readonly error: Error | undefined;
}

/** This limiter lost or regained its ceiling store. */
export interface DegradedChange {
  readonly degraded: boolean;
  /** How long it had been so, where it ends. */
  readonly forMs: Milliseconds | undefined;
  readonly error: Error | undefined;
}

/** A denial, as far as an observer may know it: never the key. */
export interface DenialNote {
  readonly policy: string;
  readonly policyVersion: number;
  readonly limitedBy: LimitedBy;
  readonly reason: DenialReason;
  readonly cost: Tokens;
  readonly retryAfterMs: Milliseconds | undefined;
  readonly shadow: boolean;
}

/** A call that passed, as far as an observer may know it: never the key. */
export interface AllowedNote {
  readonly policy: string;
  readonly policyVersion: number;
  readonly cost: Tokens;
  /** The outage mode let it pass, as the ceiling store was out of reach. */
  readonly degraded: boolean;
}

/** Whether anybody follows the calls that pass. Read at each of them, so it must cost no more than a property does. */
export interface AllowedWatch {
  readonly hasSubscribers: boolean;
}

/**
 * Receives what happened. Every method is optional to implement cheaply and must never throw; nothing on the path of a
 * decision calls it but {@link denied} and {@link allowed}, and those only while somebody watches.
 */
export interface Observer {
  /** Runs `send` inside whatever context this round trip's span makes, and answers how to end it. */
  roundTrip(start: RoundTripStart, send: () => void): (end: RoundTripEnd) => void;
  policyChanged(change: PolicyChange): void;
  degradedChanged(change: DegradedChange): void;
  /** Where it is absent, nobody hears of calls that pass. */
  readonly allowedWatch?: AllowedWatch;
  allowed?(note: AllowedNote): void;
  /** Cheap; asked at each denial before a note is made. */
  watchesDenials(): boolean;
  denied(note: DenialNote): void;
  /** An `acquire` began to wait; the answer ends it. */
  waiting(policy: string, cost: Tokens): (outcome: 'allowed' | 'denied' | 'aborted') => void;
  /** Something that is nobody's call went wrong (a source's trouble, a lost terms conflict): to be seen, not thrown. */
  trouble(error: Error): void;
  /** Carrier of the present trace context, for messages that leave this process. */
  inject(): Readonly<Record<string, string>>;
  /** Offers the limiter's readings to instruments; the answer takes them away again. */
  attach(readings: Readings): () => void;
}

/** For an observer that does not watch what is allowed. */
export const NOBODY_WATCHES: AllowedWatch = { hasSubscribers: false };

const nothing = (): void => {};

/** Observes nothing, at no cost. */
export const silentObserver: Observer = {
  roundTrip(_start, send) {
    send();
    return nothing;
  },
  policyChanged: nothing,
  degradedChanged: nothing,
  watchesDenials: () => false,
  denied: nothing,
  waiting: () => nothing,
  trouble: nothing,
  inject: () => ({}),
  attach: () => nothing,
};
