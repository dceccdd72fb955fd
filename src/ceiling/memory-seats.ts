import type { Microseconds } from '../units.js';
import { holdSeats, newSeatTable, type SeatTable, tableEnd } from './seat-ledger.js';
import type { SeatCall, SeatReply, SeatStore } from './seat-store.js';

/** Tables looked at by each call to see whether they can be dropped. */
const LOOKED_AT = 2;

/** The seats of all limiters that share this object. */
export class MemorySeats implements SeatStore {
  readonly #clock: () => Microseconds;
  readonly #tables = new Map<string, SeatTable>();
  #sweeper = this.#tables.entries();

  constructor(clock: () => Microseconds) {
    this.#clock = clock;
  }

  hold(calls: readonly SeatCall[]): Promise<SeatReply>[] {
    return calls.map((call) => Promise.resolve(this.holdNow(call)));
  }

  holdNow(call: SeatCall): SeatReply {
    const now = this.#clock();
    const name = `${call.policy}:${call.key}`;
    const table = this.#tables.get(name) ?? newSeatTable();
    this.#tables.set(name, table);
    const reply = holdSeats(table, call, now);
    this.#sweep(now);
    return reply;
  }

  /** Keys held. */
  get size(): number {
    return this.#tables.size;
  }

  #sweep(now: Microseconds): void {
    for (let i = 0; i < LOOKED_AT; i++) {
      const next = this.#sweeper.next();
      if (next.done) {
        this.#sweeper = this.#tables.entries();
        return;
      }
      const [name, table] = next.value;
      if (tableEnd(table) <= now) this.#tables.delete(name);
    }
  }
}
