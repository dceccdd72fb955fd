import type { CeilingStore, LeaseCall, LeaseReply } from '../ceiling/ceiling-store.js';
import { MemoryCeiling } from '../ceiling/memory-ceiling.js';
import type { Microseconds, MicroTokens, Milliseconds } from '../units.js';
import { type EventQueue, type Handler, NEVER } from './event-queue.js';
import { type InstanceClock, WALL_START } from './instance-clock.js';
import type { Link, Network } from './network.js';
import type { Dice } from './random.js';

/** The one store of a fleet: the in-memory ceiling, on a wall clock that can be set. */
export class StoreServer {
  readonly ceiling: MemoryCeiling;
  /** Connections to it are refused until then. */
  downUntil: Milliseconds = 0;
  /** Told of each call it has executed. */
  executed: ((call: LeaseCall, reply: LeaseReply) => void) | undefined;
  readonly #queue: EventQueue;
  #stepped: Milliseconds = 0;

  constructor(queue: EventQueue, dice: Dice, newStore: 'empty' | 'full') {
    this.#queue = queue;
    this.ceiling = new MemoryCeiling({ clock: () => this.#clock(), newStore, random: dice.roll });
  }

  get down(): boolean {
    return this.downUntil > this.#queue.now;
  }

  /** Sets the clock forward, or back. */
  step(byMs: Milliseconds): void {
    this.#stepped += byMs;
  }

  /** What is out on live leases of one bucket, spent or not. */
  outstanding(policy: string, key: string): MicroTokens {
    const now = this.#clock();
    const bucket = this.ceiling.inspect(policy, key)?.buckets.get(`${policy}:${key}`);
    let sum = 0;
    for (const holder of bucket?.holders.values() ?? []) if (holder.leaseEnd > now) sum += holder.outstanding;
    return sum;
  }

  execute(call: LeaseCall): LeaseReply {
    const reply = this.ceiling.leaseNow(call);
    this.executed?.(call, reply);
    return reply;
  }

  #clock(): Microseconds {
    return Math.floor((WALL_START + this.#queue.now + this.#stepped) * 1_000);
  }
}

/** The store as one instance sees it: across the network. All calls of a tick travel as one message. */
export class RemoteCeiling implements CeilingStore {
  readonly #server: StoreServer;
  readonly #network: Network;
  readonly #link: Link;
  readonly #clock: InstanceClock;
  readonly #asked: (calls: number) => void;

  /** @param asked told of each message, and how many calls it carries. */
  constructor(server: StoreServer, network: Network, link: Link, clock: InstanceClock, asked: (calls: number) => void) {
    this.#server = server;
    this.#network = network;
    this.#link = link;
    this.#clock = clock;
    this.#asked = asked;
  }

  get ready(): boolean {
    return !this.#server.down;
  }

  lease(calls: readonly LeaseCall[]): readonly Promise<LeaseReply>[] {
    this.#asked(calls.length);
    const resolvers: ((reply: LeaseReply) => void)[] = [];
    const promises = calls.map(() => new Promise<LeaseReply>((resolve) => resolvers.push(resolve)));
    this.#exchange(
      () => calls.map((call) => this.#server.execute(call)),
      (replies) => {
        for (const [i, reply] of replies.entries()) resolvers[i]?.(reply);
      },
    );
    return promises;
  }

  heartbeat(group: string, holder: string): Promise<number> {
    return new Promise((resolve) => {
      this.#exchange(
        () => this.#server.ceiling.heartbeat(group, holder),
        (size) => resolve(size),
      );
    });
  }

  async close(): Promise<void> {}

  /** A message there, `execute` at the store, and its answer back; a message that comes twice is executed twice. */
  #exchange<T>(execute: () => T, answered: (answer: T) => void): void {
    const request: Handler = {
      quiet: false,
      fire: () => {
        if (this.#server.down) return NEVER;
        const answer = execute();
        this.#network.send(this.#link, {
          quiet: false,
          fire: (now) => {
            const when = this.#clock.when(now);
            if (when !== now) return when;
            answered(answer);
            return NEVER;
          },
        });
        return NEVER;
      },
    };
    this.#network.send(this.#link, request);
  }
}
