import type { Microseconds, MicroTokens } from '../units.js';
import { Errand, type Filled, type Flight, NO_ERRAND } from './errand.js';
import { LeaseRow } from './lease-row.js';
import type { ShareBucket } from './share-bucket.js';

/** The row of a lease and its errand: there while anything of that is not as it is in {@link NO_ERRAND}. */
export abstract class BusyRow extends LeaseRow {
  #errand = NO_ERRAND;
  declare flight: Flight | undefined;
  /** Whether it is in the list of this tick. */
  declare queued: boolean;
  /** A call is wanted though nobody needs tokens: to report, to return, to register. */
  declare forced: boolean;
  /** Its key has no more use for it: what it holds goes back, and nothing is asked for. */
  declare released: boolean;
  /** A reply asked to return what can be spared. */
  declare giveBack: boolean;
  /** Charged without having been there: paid out of what is granted next. */
  declare debt: MicroTokens;
  /** Spent as far as the store knows, and to be given back by it; nothing of it was spent before `refundSince` there. */
  declare refund: MicroTokens;
  declare refundSince: Microseconds;
  /** Whom to tell when that has filled the bucket. */
  declare refills: readonly Filled[];
  /** Costs of all waiting callers together, and of the first; what a caller that does not wait missed. */
  declare waiting: MicroTokens;
  declare waitingHead: MicroTokens;
  declare missed: MicroTokens;
  /** Lowest seq given up since the last reply taken; 0: none. */
  declare disown: number;
  /** Calls that failed in a row. */
  declare failures: number;
  /** Store time of the last reply before the outage in which the share mode answered; 0: none to pay for. */
  declare outageSince: Microseconds;
  /** In an outage with the mode `share`: what this instance may admit by itself. */
  declare share: ShareBucket | undefined;

  static {
    for (const name of Object.keys(NO_ERRAND) as Exclude<keyof Errand, 'done'>[]) {
      Object.defineProperty(BusyRow.prototype, name, {
        get(this: BusyRow) {
          return this.#errand[name];
        },
        set(this: BusyRow, value: never) {
          if (value !== this.#errand[name]) this.#busy()[name] = value;
        },
      });
    }
  }

  /** Told that it has an errand now, or has none any more. */
  protected abstract began(): void;
  protected abstract ended(): void;

  /** Whether its row is all there is about it. */
  get resting(): boolean {
    return this.#errand === NO_ERRAND;
  }

  /** Gives up its errand, if that is done. */
  rest(): void {
    if (this.resting || !this.#errand.done) return;
    this.#errand = NO_ERRAND;
    this.ended();
  }

  #busy(): Errand {
    if (this.resting) {
      this.#errand = new Errand();
      this.began();
    }
    return this.#errand;
  }
}
