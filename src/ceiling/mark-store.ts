import type { Microseconds } from '../units.js';

/** Something said about one key, fleet-wide. All numbers are whole. */
export type MarkCall =
  | {
      readonly kind: 'block';
      readonly policy: string;
      readonly key: string;
      /** How long, for each step of a ladder; `FOREVER`: until it is lifted. At least one. */
      readonly steps: readonly Microseconds[];
      /**
       * How long after the end of its last block the key's place on the ladder is remembered; 0: this block is on no
       * ladder, and leaves the place as it is.
       */
      readonly forgetAfter: Microseconds;
    }
  | { readonly kind: 'unblock' | 'reset'; readonly policy: string; readonly key: string };

/** What holds for one key since the last that was said about it. */
export interface Mark {
  readonly policy: string;
  readonly key: string;
  /** From the store's one counter: the mark of a higher one is the newer. */
  readonly seq: number;
  /** Store time until which the key is blocked; not later than now: it is not. */
  readonly until: Microseconds;
  /** The step of the ladder, from 1; 0: it is on none. */
  readonly step: number;
  /** Number under which the key was last reset; 0: never. */
  readonly reset: number;
}

/** What a call has come to, on the store's clock. */
export interface MarkReply {
  readonly era: string;
  readonly now: Microseconds;
  readonly mark: Mark;
}

/** What has changed since a reader last asked: a page of it, in the order of the numbers. */
export interface MarkFeed {
  /** Identity of the store's data: another one where it was lost, or may have gone back. */
  readonly era: string;
  /** The counter when this era began: what has a lower number is older than it. */
  readonly born: number;
  readonly now: Microseconds;
  /**
   * The reader could not be told what it missed, as it knows another era or asks too late: this is read from the start,
   * and of this era there is nothing but what now follows.
   */
  readonly fresh: boolean;
  readonly marks: readonly Mark[];
  /** What to ask for next: everything up to this has been told. */
  readonly seq: number;
  /** Whether there is another page now. */
  readonly more: boolean;
}

/**
 * Remembers which keys are blocked, and tells every instance what has changed. Contract: each call is atomic, on the
 * store's own clock; a block never shortens one that is under way, and climbs a ladder only where none is; a call that is
 * executed twice changes nothing the second time that matters. Records go when nothing rests on them any more: a reader
 * that comes later than that is told to read from the start.
 */
export interface MarkStore {
  mark(call: MarkCall): Promise<MarkReply>;
  /**
   * @param era what the reader knows; `''`: nothing
   * @param seq up to where
   * @param reading whether it is under way to read from the start: what has gone meanwhile it does not miss, as long as
   * that takes less than {@link MARK_KEPT_US}
   */
  feed(era: string, seq: number, reading: boolean): Promise<MarkFeed>;
  /** Present where the store is in this process: tells each mark within the call that makes it; the answer ends it. */
  listen?(heard: (reply: MarkReply) => void): () => void;
}

/** The end of a block that ends only when it is lifted: a moment in the year 2223, which clients of Redis still read exactly. */
export const FOREVER: Microseconds = 8_000_000_000_000_000;
/** Every record is kept for this long, so that whoever asks more often hears of it. */
export const MARK_KEPT_US: Microseconds = 60_000_000;
/** Marks in a page. */
export const MARKS_A_PAGE = 256;
