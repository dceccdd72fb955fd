import {
  createLimiter,
  type Limiter,
  type Observer,
  type PolicyCounters,
  type PolicyLimiter,
  type Readings,
  silentObserver,
} from '../index.js';
import type { EventQueue } from './event-queue.js';
import { InstanceClock } from './instance-clock.js';
import type { Link, Network } from './network.js';
import type { Group, Plan } from './parse-scenario.js';
import type { PolicyFeed } from './policy-feed.js';
import type { Dice } from './random.js';
import type { Recorder } from './recorder.js';
import { RemoteCeiling, type StoreServer } from './remote-ceiling.js';

/** What instances live in. */
export interface World {
  readonly plan: Plan;
  readonly queue: EventQueue;
  readonly recorder: Recorder;
  readonly server: StoreServer;
  readonly network: Network;
  readonly feed: PolicyFeed;
  /** Processes that are being started: loading what they are made of may take the machine some time, but no virtual time. */
  readonly starting: Set<Promise<void>>;
  /** Told of what must not happen: a production promise that was rejected. */
  readonly failed: (error: unknown) => void;
}

/** One policy of a running limiter, and its counters. */
export interface Running {
  readonly limiter: PolicyLimiter;
  readonly counters: Readonly<PolicyCounters>;
}

/** One place in the fleet, and the processes that run there, one after another. */
export class Instance {
  readonly group: Group;
  readonly storeLink: Link = { cutUntil: 0 };
  readonly policyLink: Link = { cutUntil: 0 };
  readonly failed: (error: unknown) => void;
  /** By the name of the policy; `undefined` while no process runs. */
  running: ReadonlyMap<string, Running> | undefined;
  clock: InstanceClock;
  readonly #world: World;
  readonly #dice: Dice;
  readonly #name: string;
  #limiter: Limiter | undefined;

  constructor(world: World, group: Group, name: string, dice: Dice) {
    this.#world = world;
    this.group = group;
    this.#name = name;
    this.#dice = dice;
    this.failed = world.failed;
    this.clock = this.#newClock();
  }

  /** Starts a process. It runs as soon as `createLimiter` has made its limiter, before the next event. */
  start(): void {
    const { plan, server, network, feed, recorder, queue, starting } = this.#world;
    const clock = this.#newClock();
    this.clock = clock;
    let askedAt = -1;
    let trips = 0;
    const ceiling = new RemoteCeiling(server, network, this.storeLink, clock, (calls) => {
      trips = queue.now === askedAt ? trips + 1 : 1;
      askedAt = queue.now;
      recorder.asked(calls, trips, askedAt);
    });
    let counters: Readings['counters'] = () => [];
    const started = createLimiter({
      policies: plan.policies.map(({ document }) => document),
      ceiling,
      policySource: feed.source(this.policyLink, clock),
      instanceId: this.#name,
      weight: this.group.weight,
      callDeadlineMs: plan.callDeadlineMs,
      observer: observerOf((readings) => {
        counters = readings.counters;
      }, this.failed),
      onTrouble: () => {},
      time: clock,
      random: this.#dice.roll,
    }).then((limiter) => {
      if (clock.stopped) return;
      this.#limiter = limiter;
      // Not before: what some policies run on is loaded while the limiter is made.
      this.running = new Map(
        [...counters()].map((row) => [row.policy, { limiter: limiter.policy(row.policy), counters: row }]),
      );
    }, this.failed);
    starting.add(started);
    void started.then(() => starting.delete(started));
  }

  /** The process is gone, with all it held. */
  crash(): void {
    for (const row of this.stats()) this.#world.recorder.crashed(row);
    this.clock.stopped = true;
    this.running = undefined;
    this.#limiter = undefined;
  }

  /** The process stands still until `until`. */
  stall(until: number): void {
    this.clock.stalledUntil = Math.max(this.clock.stalledUntil, until);
  }

  /** What its limiter has counted, a row a policy. */
  stats(): ReturnType<Limiter['stats']> {
    return this.#limiter?.stats() ?? [];
  }

  #newClock(): InstanceClock {
    return new InstanceClock(this.#world.queue, 1 + this.group.drift);
  }
}

/** Hands out what a limiter counts, which callers read to see at once what was decided. */
function observerOf(attached: (readings: Readings) => void, failed: (error: unknown) => void): Observer {
  return {
    ...silentObserver,
    policyChanged({ error }) {
      if (error) failed(error);
    },
    attach(readings) {
      attached(readings);
      return () => {};
    },
  };
}
