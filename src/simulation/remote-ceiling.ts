import type { CeilingStore, LeaseCall, LeaseReply } from '../ceiling/ceiling-store.js';
import { MemoryCeiling } from '../ceiling/memory-ceiling.js';
import type { PaceStore } from '../ceiling/pace-store.js';
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
    return this.#ask(calls, (call) => this.#server.execute(call));
  }

  readonly pacer: PaceStore = {
    pace: (calls) => this.#ask(calls, (call) => this.#server.ceiling.pacer.paceNow(call)),
  };

  heartbeat(group: string, holder: string): Promise<number> {
    return new Promise((resolve) => {
      this.#send({
        execute: () => this.#server.ceiling.heartbeat(group, holder),
        answered: resolve,
      });
    });
  }

  async close(): Promise<void> {}

  #ask<Call, Reply>(calls: readonly Call[], execute: (call: Call) => Reply): readonly Promise<Reply>[] {
    this.#asked(calls.length);
    const batch = new Batch(calls, execute);
    const promises = batch.promises();
    this.#send(batch);
    return promises;
  }

  #send<T>(exchange: Exchange<T>): void {
    this.#network.send(this.#link, new Request(exchange, this.#server, this.#network, this.#link, this.#clock));
  }
}

/** What is done at the store with a message, and here with what the store answers. */
interface Exchange<T> {
  execute(): T;
  answered(answer: T): void;
}

/** The calls of one tick. */
class Batch<Call, Reply> implements Exchange<readonly Reply[]> {
  readonly #calls: readonly Call[];
  readonly #execute: (call: Call) => Reply;
  readonly #resolvers: ((reply: Reply) => void)[] = [];

  constructor(calls: readonly Call[], execute: (call: Call) => Reply) {
    this.#calls = calls;
    this.#execute = execute;
  }

  promises(): Promise<Reply>[] {
    const resolvers = this.#resolvers;
    return this.#calls.map(() => new Promise<Reply>((resolve) => resolvers.push(resolve)));
  }

  execute(): readonly Reply[] {
    const replies: Reply[] = [];
    for (const call of this.#calls) replies.push(this.#execute(call));
    return replies;
  }

  answered(replies: readonly Reply[]): void {
    for (let i = 0; i < replies.length; i++) this.#resolvers[i]?.(replies[i] as Reply);
  }
}

/** A message on its way to the store; one that comes twice is executed twice, and answered twice. */
class Request<T> implements Handler {
  readonly quiet = true;

  constructor(
    readonly exchange: Exchange<T>,
    readonly server: StoreServer,
    readonly network: Network,
    readonly link: Link,
    readonly clock: InstanceClock,
  ) {}

  fire(): Milliseconds {
    if (!this.server.down) this.network.send(this.link, new Answer(this.exchange, this.exchange.execute(), this.clock));
    return NEVER;
  }
}

/** An answer on its way back. */
class Answer<T> implements Handler {
  readonly quiet = false;

  constructor(
    readonly exchange: Exchange<T>,
    readonly answer: T,
    readonly clock: InstanceClock,
  ) {}

  fire(now: Milliseconds): Milliseconds {
    const when = this.clock.when(now);
    if (when !== now) return when;
    this.exchange.answered(this.answer);
    return NEVER;
  }
}
