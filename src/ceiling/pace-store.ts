import type { Microseconds, MicroTokens } from '../units.js';

/**
 * One call of one holder about the pace of one key: slots for the callers that wait at it, in their order. All numbers
 * are whole.
 */
export interface PaceCall {
  readonly policy: string;
  readonly key: string;
  /** The highest that has called decides the rate and the queue; of two under one version the slower rate, the shorter queue. */
  readonly version: number;
  readonly rateNum: number;
  readonly rateDen: number;
  /** Most tokens' worth of slots that may lie ahead of a caller. */
  readonly queue: MicroTokens;
  /** Random identity of the calling limiter object. */
  readonly holder: string;
  /** From the limiter's one counter: a repeat gets the same slots, an older call none. */
  readonly seq: number;
  /** What each caller costs; each positive. */
  readonly costs: readonly MicroTokens[];
}

export interface PaceReply {
  readonly seq: number;
  /** `stale`: an older seq than one that has been answered; nothing was reserved. */
  readonly status: 'reserved' | 'stale';
  /** Store time at which the call was answered. */
  readonly now: Microseconds;
  /** When each may go, on the store's clock, in the order of the costs; those beyond the last found the queue full. */
  readonly slots: readonly Microseconds[];
  /** How long the queue is, in time, behind the last of these. */
  readonly behind: Microseconds;
  /** Version of the policy whose rate holds at the store; above the caller's: it must re-read its policy. */
  readonly version: number;
}

/**
 * A virtual schedule for each key: slot = max(now, next), and next = slot + cost ÷ rate; who would wait behind more than
 * the queue is refused. So the slots of a key, over the whole fleet, are never closer together than cost ÷ rate.
 *
 * Contract: each call is atomic, on the store's own clock; `pace` starts all calls before it returns and never throws;
 * calls may be executed twice or late, which at worst wastes slots. A key nobody waits at has an empty queue: so a store
 * that loses its data forgets the slots it gave, and for as long as its queue was the outflow may be twice the rate.
 */
export interface PaceStore {
  pace(calls: readonly PaceCall[]): readonly Promise<PaceReply>[];
}

/** How long the rate of a key is remembered after its last call, so that a stale instance does not bring the old one back. */
export const TERMS_KEPT_US: Microseconds = 3_600_000_000;
/** How long an answer is remembered for a repeat of its call. */
export const ANSWER_KEPT_US: Microseconds = 1_000_000;
