import type { Microseconds } from '../units.js';

/**
 * One call of one holder about the seats of one key: how many of them its callers sit on, and how many more it would
 * take. All numbers are whole. `docs/concurrency.md` has the rules.
 */
export interface SeatCall {
  readonly policy: string;
  readonly key: string;
  readonly version: number;
  /** Most seats of the key, over the whole fleet; positive. */
  readonly limit: number;
  /** Random identity of the calling limiter object. */
  readonly holder: string;
  /** From the limiter's one counter: a repeat gets the same answer, an older call changes nothing. */
  readonly seq: number;
  /** Seats in use at this holder: the truth, whatever the store had noted before. */
  readonly held: number;
  /** Seats for callers that wait. */
  readonly want: number;
  /** A holder that is not heard of for this long has left its seats. */
  readonly lostAfter: Microseconds;
}

export interface SeatReply {
  readonly seq: number;
  /** `stale`: an older seq than one that has been answered; nothing was changed. */
  readonly status: 'granted' | 'stale';
  readonly granted: number;
  /** Seats taken by the whole fleet, those just granted included. */
  readonly taken: number;
  /**
   * Where the fleet wants more seats than there are: the most that one holder should sit on, so that each gets its fair
   * share. One that sits on more gives a seat back instead of handing it on. 0: there are enough.
   */
  readonly most: number;
  /** Version of the policy whose limit holds at the store; above the caller's: it must re-read its policy. */
  readonly version: number;
}

/**
 * Counts who is in flight. Contract: each call is atomic, on the store's own clock; `hold` starts all calls before it
 * returns and never throws; calls may be executed twice or late. A key nobody sits at takes no memory.
 */
export interface SeatStore {
  hold(calls: readonly SeatCall[]): readonly Promise<SeatReply>[];
  /** Present where the store answers within the call itself. */
  holdNow?(call: SeatCall): SeatReply;
}

/** A holder that wanted more seats is taken to want them still for this long. */
export const WANT_TTL_US: Microseconds = 1_000_000;
