import { type Random, randomId } from '../time.js';
import type { Microseconds } from '../units.js';
import { beginEra, feedMarks, type MarkTable, newMarkTable, purgeMarks, setMark } from './mark-ledger.js';
import type { MarkCall, MarkFeed, MarkReply, MarkStore } from './mark-store.js';

/** Records are looked through at most this often: a call should not cost more than one of them. */
const PURGE_EVERY_US: Microseconds = 1_000_000;

/** The marks of all limiters that share this object. */
export class MemoryMarks implements MarkStore {
  readonly #clock: () => Microseconds;
  readonly #random: Random | undefined;
  readonly #listeners = new Set<(reply: MarkReply) => void>();
  #made: MarkTable | undefined;
  #purgedAt: Microseconds = 0;

  constructor(clock: () => Microseconds, random?: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  async mark(call: MarkCall): Promise<MarkReply> {
    const now = this.#clock();
    this.#purge(now);
    const reply = { era: this.#table.era, now, mark: setMark(this.#table, call, now) };
    for (const heard of this.#listeners) heard(reply);
    return reply;
  }

  async feed(era: string, seq: number, reading: boolean): Promise<MarkFeed> {
    const now = this.#clock();
    this.#purge(now);
    return feedMarks(this.#table, era, seq, reading, now);
  }

  listen(heard: (reply: MarkReply) => void): () => void {
    this.#listeners.add(heard);
    return () => this.#listeners.delete(heard);
  }

  /** Keys about which something is remembered. */
  get size(): number {
    return this.#table.records.size;
  }

  /** Loses all data. For tests and simulations. */
  lose(): void {
    this.#made = undefined;
  }

  /** A copy of all data, as a replica has it. For tests and simulations. */
  snapshot(): MarkTable {
    return structuredClone(this.#table);
  }

  /** Goes on from an older copy under a new era, as a promoted replica does. For tests and simulations. */
  failover(snapshot: MarkTable): void {
    this.#made = structuredClone(snapshot);
    beginEra(this.#made, randomId(this.#random));
  }

  /** Made at the first use: whoever blocks nobody draws no random number for it. */
  get #table(): MarkTable {
    this.#made ??= newMarkTable(randomId(this.#random));
    return this.#made;
  }

  #purge(now: Microseconds): void {
    // A clock that went back is no reason to wait.
    if (Math.abs(now - this.#purgedAt) < PURGE_EVERY_US) return;
    this.#purgedAt = now;
    purgeMarks(this.#table, now);
  }
}
