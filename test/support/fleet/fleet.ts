import type { LeaseReply } from '../../../src/ceiling/ceiling-store.js';
import type { Partition } from '../../../src/ceiling/ledger.js';
import type { MemoryCeiling } from '../../../src/ceiling/memory-ceiling.js';
import type { PolicyDocument } from '../../../src/policy/policy.js';
import type { Microseconds, MicroTokens, Milliseconds, Tokens } from '../../../src/units.js';
import { BUCKET, copyOf, KEY, OTHER_KEY, POLICY, probe, termsOf } from './bucket-view.js';
import { Chance } from './chance.js';
import { MachineTime, TrueTime } from './clocks.js';
import { Instance } from './instance.js';
import type { Production } from './production.js';
import type { Message } from './wire.js';

export interface FleetOptions {
  readonly burst: Tokens;
  /** Tokens in each `perMs`. */
  readonly rate: Tokens;
  readonly perMs: Milliseconds;
  readonly leaseMs: Milliseconds;
  readonly deadlineMs: Milliseconds;
  readonly seed?: number;
  /** Further fields of the policy's document. */
  readonly policy?: Partial<PolicyDocument>;
  /** What a heartbeat answers; left out: heartbeats are lost. */
  readonly fleetSize?: number;
}

/** What a fleet tells of what happens in it, as it happens. */
export interface Witness {
  admitted(tokens: MicroTokens): void;
  /** A message has run at the store, or something befell the store's data: its terms may have changed. */
  stored(): void;
}

/**
 * Limiters of the product and one store of the product, on clocks and wires in the hands of a test. Nothing happens by
 * itself: time moves when the test moves it, and a message runs and is answered when the test says so.
 */
export class Fleet {
  readonly production: Production;
  readonly options: FleetOptions;
  readonly chance: Chance;
  readonly time = new TrueTime();
  readonly store: MemoryCeiling;
  readonly instances: Instance[] = [];
  /** Sent and not yet taken in hand by the test. */
  readonly fresh: Message[] = [];
  /** Whether calls that limiters make by themselves, as time moves on, run and are answered at once. */
  answersAtOnce = false;
  witness: Witness | undefined;
  /** Admitted so far. */
  total: MicroTokens = 0;
  /** The newest policy there is, whoever has heard of it. */
  news: PolicyDocument;
  newsFor: (instance: Instance) => PolicyDocument | undefined = () => undefined;

  constructor(production: Production, options: FleetOptions) {
    this.production = production;
    this.options = options;
    this.chance = new Chance(options.seed ?? 1);
    this.store = new production.MemoryCeiling({
      clock: this.time.storeNow,
      newStore: 'empty',
      random: this.chance.next,
    });
    this.news = {
      name: POLICY,
      version: 1,
      ceiling: { rate: options.rate, burst: options.burst, per: options.perMs },
      lease: { durationMs: options.leaseMs },
      ...options.policy,
    };
    this.#bornLongAgo();
  }

  /** A new limiter; each call makes another, also with the same `instanceId`. */
  async start({
    document = this.news,
    drift = 0,
    originMs = 5_000,
    wallErrorMs = 0,
    instanceId = 'web-7',
  }: Partial<{
    document: PolicyDocument;
    drift: number;
    originMs: Milliseconds;
    wallErrorMs: Milliseconds;
    instanceId: string;
  }> = {}): Promise<Instance> {
    const instance = new Instance(this, new MachineTime(this.time, originMs, drift, wallErrorMs));
    await instance.start(document, instanceId);
    this.instances.push(instance);
    return instance;
  }

  /** True time, in ms. */
  get now(): Milliseconds {
    return this.time.us / 1_000;
  }

  /** Moves true time on to `ms`, running the timers of all instances that can run them, when they are due. */
  at(ms: Milliseconds): void {
    const until = Math.round(ms * 1_000);
    for (;;) {
      let first: Instance | undefined;
      let due = until;
      for (const instance of this.instances) {
        if (instance.dead) continue;
        const at = Math.max(instance.time.dueAt(), instance.stalledUntilUs, this.time.us);
        if (at < due) {
          due = at;
          first = instance;
        }
      }
      if (!first) break;
      this.time.us = due;
      first.turn();
      if (this.answersAtOnce) for (const message of this.fresh.splice(0)) message.exchange();
    }
    this.time.us = Math.max(this.time.us, until);
    for (const instance of this.instances) instance.turn();
  }

  /** The data of the policy's partition at the store. */
  get partition(): Partition | undefined {
    return this.store.inspect(POLICY, KEY);
  }

  /** T as the next call would find it. */
  get tokens(): MicroTokens {
    return this.#tokensAt([this.time.storeNow()]);
  }

  /** T as the next call would find it if the bucket had been called whenever a lease ended: what is credited late is in. */
  get tokensCredited(): MicroTokens {
    const now = this.time.storeNow();
    const bucket = this.partition?.buckets.get(BUCKET);
    const moments = [now];
    for (const { outstanding, leaseEnd } of bucket?.holders.values() ?? [])
      if (outstanding > 0 && leaseEnd <= now && leaseEnd > (bucket?.level.at ?? 0)) moments.push(leaseEnd);
    return this.#tokensAt(moments.sort((a, b) => a - b));
  }

  /** A call of somebody else about another key of the same partition, such as moves the fence. */
  otherKeyHears(document: PolicyDocument): void {
    this.#otherKey(document);
    this.witness?.stored();
  }

  /** @internal */
  sent(message: Message): void {
    this.fresh.push(message);
    message.from.sent.push(message);
  }

  /** @internal */
  execute(message: Message): LeaseReply {
    const reply = this.store.leaseNow(message.call);
    this.witness?.stored();
    return reply;
  }

  /** @internal */
  admitted(tokens: MicroTokens): void {
    this.total += tokens;
    this.witness?.admitted(tokens);
  }

  /** Makes the store's data old enough for an untouched bucket to be full. */
  #bornLongAgo(): void {
    const { burst, rate, perMs } = this.options;
    const age = Math.ceil((burst / rate) * perMs * 1_000) + 10_000_000;
    this.time.storeOffsetUs = -age;
    this.#otherKey(this.news);
    this.time.storeOffsetUs = 0;
  }

  #otherKey(document: PolicyDocument): void {
    this.store.leaseNow({ ...probe(termsOf(document), document), key: OTHER_KEY, holder: 'neighbour' });
  }

  #tokensAt(moments: readonly Microseconds[]): MicroTokens {
    const { partition } = this;
    if (!partition) return 0;
    const copy = copyOf(partition);
    const fence = copy.fences.get(POLICY);
    if (!fence) return 0;
    const { version, burst, rateNum, rateDen } = fence;
    const call = probe({ version, burst, rateNum, rateDen });
    for (const [i, now] of moments.entries())
      this.production.execute(copy, { ...call, seq: i + 1 }, { now, newEra: '', newStore: 'empty' });
    return copy.buckets.get(BUCKET)?.level.tokens ?? 0;
  }
}
