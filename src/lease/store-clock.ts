import { partitionOf } from '../ceiling/ceiling-store.js';
import type { Microseconds, Milliseconds } from '../units.js';

/**
 * This process's idea of the store's time: that of the last reply, plus what has passed here since. It runs late by
 * that reply's way back, never early by more than the drift of two clocks between two replies.
 */
export class StoreClock {
  #storeTime: Microseconds = 0;
  #takenAt: Milliseconds = 0;

  /** The eras of the store's data that were ever heard of; an account remembers the number of one. */
  readonly #eras = [''];

  eraOf(number: number): string {
    return this.#eras[number] as string;
  }

  numberOf(era: string): number {
    const number = this.#eras.indexOf(era);
    return number < 0 ? this.#eras.push(era) - 1 : number;
  }

  /** Store time of the last reply; 0: none yet. */
  get lastReply(): Microseconds {
    return this.#storeTime;
  }

  observe(storeTime: Microseconds, now: Milliseconds): void {
    this.#storeTime = storeTime;
    this.#takenAt = now;
  }

  /** The store's time at the local time `now`; 0 while none is known. */
  at(now: Milliseconds): Microseconds {
    return this.#storeTime === 0 ? 0 : this.#storeTime + Math.floor((now - this.#takenAt) * 1_000);
  }

  /** The least that the store's time can be at the local time `now`, however fast this clock is; 0 while none is known. */
  earliest(now: Milliseconds): Microseconds {
    return this.#storeTime === 0 ? 0 : this.#storeTime + Math.floor((now - this.#takenAt) * 990);
  }
}

/** One for each partition of the store: each may be another server's. */
export class StoreClocks {
  readonly #clocks = new Map<number, StoreClock>();

  /** That of the partition in which a ledger keeps `key`. */
  of(ledger: string, key: string): StoreClock {
    const partition = partitionOf(ledger, key);
    const known = this.#clocks.get(partition);
    if (known) return known;
    const clock = new StoreClock();
    this.#clocks.set(partition, clock);
    return clock;
  }
}
