import type { SeatCall } from '../ceiling/seat-store.js';
import type { Sleeper } from '../lease/wake-queue.js';
import { type InLine, Line } from '../line.js';
import { type ConcurrencyTerms, type Policy, termsFor } from '../policy/policy.js';
import type { PolicyCounters } from '../telemetry/observer.js';
import { MICROS_PER_MS, type Milliseconds } from '../units.js';
import type { Seat, SeatRefusal } from './seat.js';

/** The policy whose seats are counted; replaced in place when a newer version arrives. */
export interface SeatedPolicy {
  policy: Policy;
  readonly counters: Pick<PolicyCounters, 'seatsTaken' | 'seatsRefused' | 'seatsShadowRefused'>;
  /** Until when a key is blocked; `-Infinity`: it is not. */
  blockEnd(key: string): Milliseconds;
  /** Under which name a key leaves this process: its own, or a digest of it. */
  nameOf(key: string): string;
}

/** How long a caller of `enter` waits. */
export interface Patience {
  /** Left out: for one answer of the store. */
  readonly maxWaitMs: Milliseconds | undefined;
  readonly signal: AbortSignal | undefined;
  /** Those of a higher one are seated first, among those who wait here. */
  readonly priority: number;
  /** Where so many wait here already, one more is turned away. */
  readonly maxQueued: number;
}

/** One `enter` that waits. It has no seat. */
export interface SeatWaiter extends InLine<SeatWaiter> {
  /** When it must be answered; Infinity for one that waits for the store's next answer only. */
  readonly deadline: Milliseconds;
  readonly patient: boolean;
  /** Whether a call that asks for its seat has been sent. */
  asked: boolean;
  settle(seat: Seat): void;
}

/** One key's seats at this holder. */
export class SeatAccount implements Sleeper {
  readonly key: string;
  /** As the store knows it. */
  readonly name: string;
  readonly owner: SeatedPolicy;
  /** In use here. */
  held = 0;
  readonly waiters = new Line<SeatWaiter>();
  /** The most this holder should sit on while others wait; 0: no more than it needs. */
  most = 0;
  /** Sequence number of the call under way; 0: none. */
  flight = 0;
  queued = false;
  /** The store does not know yet what is held. */
  changed = false;
  /** Asking again before this is useless: there was no seat, or no answer. */
  pausedUntil: Milliseconds = Number.NEGATIVE_INFINITY;
  /** The last call was not answered. */
  failed = false;
  /** When the store must hear of the seats again, or takes them for left. */
  renewAt: Milliseconds = Number.POSITIVE_INFINITY;
  wakeAt: Milliseconds = Number.POSITIVE_INFINITY;

  constructor(key: string, owner: SeatedPolicy) {
    this.key = key;
    this.name = owner.nameOf(key);
    this.owner = owner;
  }

  /** `undefined` where a newer policy counts no seats any more. */
  get terms(): ConcurrencyTerms | undefined {
    return termsFor(this.owner.policy, this.key).concurrency;
  }

  /** Nothing in use, nobody waiting, nothing to tell or to remember: it can be forgotten. */
  idle(now: Milliseconds): boolean {
    const { held, waiters, flight, queued, changed } = this;
    return held === 0 && waiters.size === 0 && flight === 0 && !queued && !changed && now >= this.pausedUntil;
  }

  /** Why there is no seat now. */
  get refusal(): SeatRefusal {
    return this.failed ? 'degraded' : 'full';
  }

  get blockEnd(): Milliseconds {
    return this.owner.blockEnd(this.key);
  }

  /** How many wait that may be seated now: nobody while the key is blocked. */
  wanting(now: Milliseconds): number {
    return now < this.blockEnd ? 0 : this.waiters.size;
  }

  /** Whether a seat that comes free here goes to one who waits here, or back to the fleet. */
  mayHandOn(now: Milliseconds): boolean {
    return this.wanting(now) > 0 && (this.most === 0 || this.held <= this.most);
  }

  /** The call that says what is held, and asks for all who wait. */
  call(holder: string, seq: number, terms: ConcurrencyTerms, now: Milliseconds): SeatCall {
    const { name, version } = this.owner.policy;
    return {
      policy: name,
      key: this.name,
      version,
      limit: terms.limit,
      holder,
      seq,
      held: this.held,
      want: Math.min(this.wanting(now), terms.limit),
      lostAfter: terms.lostAfterMs * MICROS_PER_MS,
    };
  }
}
