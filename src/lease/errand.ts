import type { Microseconds, MicroTokens, Milliseconds } from '../units.js';
import type { ShareBucket } from './share-bucket.js';

/** Told once how it went with the bucket that was to be filled. */
export type Filled = (error?: Error) => void;

/** Nobody wants to be told. */
export const NOBODY: readonly Filled[] = Object.freeze([]);

/** A call that has been sent and neither answered nor given up. */
export interface Flight {
  readonly seq: number;
  readonly sentAt: Milliseconds;
  readonly leaseMs: Milliseconds;
  readonly returned: MicroTokens;
  readonly refund: MicroTokens;
  /** Told whether it filled the bucket. */
  readonly refills: readonly Filled[];
  /** What the first of those who need tokens lacked. */
  readonly head: MicroTokens;
  /** The outage it pays for; 0: none. */
  readonly since: Microseconds;
  /** Told once, when the call is answered, given up or void. */
  settle: () => void;
}

/** What an account is about at a moment. Most are about nothing, and share {@link NO_ERRAND}. */
export class Errand {
  flight: Flight | undefined = undefined;
  queued = false;
  forced = false;
  released = false;
  giveBack = false;
  debt: MicroTokens = 0;
  refund: MicroTokens = 0;
  refundSince: Microseconds = 0;
  refills: readonly Filled[] = NOBODY;
  waiting: MicroTokens = 0;
  waitingHead: MicroTokens = 0;
  missed: MicroTokens = 0;
  disown = 0;
  failures = 0;
  outageSince: Microseconds = 0;
  share: ShareBucket | undefined = undefined;

  /** Whether nothing of it would be missed. */
  get done(): boolean {
    const owed = this.debt + this.refund + this.disown + this.failures + this.outageSince;
    const wanted = this.waiting + this.waitingHead + this.missed + this.refills.length;
    return !(this.flight || this.queued || this.forced || this.released || this.giveBack) && owed + wanted === 0;
  }
}

export const NO_ERRAND: Readonly<Errand> = Object.freeze(new Errand());
