import type { Random, Time } from '../time.js';
import { randomId } from '../time.js';
import type { Microseconds, MicroTokens } from '../units.js';
import { type CeilingStore, FLEET_TTL_MS, type LeaseCall, type LeaseReply, partitionOf } from './ceiling-store.js';
import { execute, newPartition, type Partition, suspect } from './ledger.js';
import { type Look, leftIn } from './left.js';
import { MemoryMarks } from './memory-marks.js';
import { MemoryPace } from './memory-pace.js';
import { MemorySeats } from './memory-seats.js';

/** Settings of {@link MemoryCeiling}. */
export interface MemoryCeilingOptions {
  /** The store's clock: whole microseconds since the epoch. */
  readonly clock: () => Microseconds;
  /** Whether buckets of a store without data start full (default: nothing was there before this process) or empty. */
  readonly newStore?: 'empty' | 'full';
  /** For the identity of the data; `crypto` by default. */
  readonly random?: Random | undefined;
}

/** How many buckets each call looks at to see whether they can be dropped. */
const LOOKED_AT = 2;

/** The ceilings of all limiters that share this object, kept in this process. Answers within the call itself. */
export class MemoryCeiling implements CeilingStore {
  readonly ready = true;
  readonly seats: MemorySeats;
  readonly pacer: MemoryPace;
  readonly marks: MemoryMarks;
  readonly #clock: () => Microseconds;
  readonly #newStore: 'empty' | 'full';
  readonly #random: Random | undefined;
  readonly #partitions = new Map<number, Partition>();
  readonly #groups = new Map<string, Map<string, Microseconds>>();
  #sweeper: Iterator<[Partition, string, Microseconds]>;

  constructor(options: MemoryCeilingOptions) {
    this.#clock = options.clock;
    this.#newStore = options.newStore ?? 'full';
    this.#random = options.random;
    this.#sweeper = this.#buckets();
    this.seats = new MemorySeats(options.clock);
    this.pacer = new MemoryPace(options.clock);
    this.marks = new MemoryMarks(options.clock, options.random);
  }

  lease(calls: readonly LeaseCall[]): Promise<LeaseReply>[] {
    return calls.map((call) => Promise.resolve(this.leaseNow(call)));
  }

  leaseNow(call: LeaseCall): LeaseReply {
    const now = this.#clock();
    const index = partitionOf(call.policy, call.key);
    let partition = this.#partitions.get(index);
    if (!partition) {
      partition = newPartition({ now, newEra: randomId(this.#random), newStore: this.#newStore });
      this.#partitions.set(index, partition);
    }
    const reply = execute(partition, call, { now, newEra: partition.era, newStore: this.#newStore });
    this.#sweep(now);
    return reply;
  }

  leftNow(look: Look): MicroTokens {
    const partition = this.#partitions.get(partitionOf(look.policy, look.key));
    return partition ? leftIn(partition, look, this.#clock()) : 0;
  }

  async heartbeat(group: string, holder: string): Promise<number> {
    const now = this.#clock();
    const members = this.#groups.get(group) ?? new Map<string, Microseconds>();
    this.#groups.set(group, members);
    // Whoever was seen last stands last, so that one look at the first ones is enough, however large the fleet is.
    members.delete(holder);
    members.set(holder, now);
    for (const [id, seen] of members) {
      if (now - seen <= FLEET_TTL_MS * 1_000) break;
      members.delete(id);
    }
    return members.size;
  }

  async close(): Promise<void> {}

  /** Loses all data, as a Redis restarted empty does. For tests and simulations. */
  lose(): void {
    this.#partitions.clear();
    this.#sweeper = this.#buckets();
    this.marks.lose();
  }

  /** A copy of all data, as a replica has it. For tests and simulations. */
  snapshot(): ReadonlyMap<number, Partition> {
    return structuredClone(this.#partitions);
  }

  /** Goes on from an older copy under a new era, as a promoted replica does. For tests and simulations. */
  failover(snapshot: ReadonlyMap<number, Partition>): void {
    const now = this.#clock();
    this.#partitions.clear();
    for (const [index, partition] of structuredClone(snapshot)) {
      suspect(partition, randomId(this.#random), now);
      this.#partitions.set(index, partition);
    }
    this.#sweeper = this.#buckets();
  }

  /** The data itself, to be looked at by tests and simulations. */
  inspect(policy: string, key: string): Partition | undefined {
    return this.#partitions.get(partitionOf(policy, key));
  }

  /** Buckets held, over all partitions. */
  get size(): number {
    let size = 0;
    for (const partition of this.#partitions.values()) size += partition.buckets.size;
    return size;
  }

  #sweep(now: Microseconds): void {
    for (let i = 0; i < LOOKED_AT; i++) {
      const next = this.#sweeper.next();
      if (next.done) {
        this.#sweeper = this.#buckets();
        return;
      }
      const [partition, name, expiresAt] = next.value;
      if (expiresAt <= now) partition.buckets.delete(name);
    }
  }

  *#buckets(): Iterator<[Partition, string, Microseconds]> {
    for (const partition of this.#partitions.values()) {
      for (const [name, bucket] of partition.buckets) yield [partition, name, bucket.expiresAt];
    }
  }
}

/** A store clock that runs with `time`'s monotonic clock, set to the wall clock once. */
export function storeClock(time: Time): () => Microseconds {
  const offset = time.wallNow() - time.now();
  return () => Math.floor((offset + time.now()) * 1_000);
}
