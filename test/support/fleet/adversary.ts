import type { MemoryCeiling } from '../../../src/ceiling/memory-ceiling.js';
import type { PolicyDocument } from '../../../src/policy/policy.js';
import { MICRO } from '../../../src/units.js';
import { KEY, POLICY } from './bucket-view.js';
import { Chance } from './chance.js';
import { Fleet } from './fleet.js';
import { FleetOracle } from './fleet-oracle.js';
import type { Instance } from './instance.js';
import type { Production } from './production.js';
import type { Profile, Run } from './run.js';
import type { Message } from './wire.js';

const STEPS = 350;
const SKEW_MS = 100;
const MESSAGES_AT_ONCE = 4;
/** Across which Φ may rise: holders register again. */
const LOSSES: ReadonlySet<Profile> = new Set(['loss', 'strict', 'failover', 'evicted']);

/** One random life of a fleet: seeded, saturated, watched at every step. */
export async function adversary(seed: number, profile: Profile, production: Production): Promise<Run> {
  const run = new AdversarialRun(seed, profile, production);
  await run.play();
  return run.result();
}

class AdversarialRun {
  readonly #chance: Chance;
  readonly #profile: Profile;
  readonly #fleet: Fleet;
  readonly #oracle: FleetOracle;
  readonly #fillMs: number;
  /** Messages and replies that lie in the network, to arrive some day. */
  readonly #late: Message[] = [];
  readonly #lateReplies: (() => void)[] = [];
  /** By instance: how eagerly it spends. */
  readonly #eager = new Map<Instance, number>();
  #members: Instance[] = [];
  #faults = 0;
  #calls = 0;
  #snapshot: ReturnType<MemoryCeiling['snapshot']> | undefined;
  /** Whether the product's own idea of how much to ask for is left as it is. */
  readonly #ownAsks: boolean;

  constructor(seed: number, profile: Profile, production: Production) {
    const chance = new Chance(seed);
    this.#chance = chance;
    this.#profile = profile;
    const burst = 4 + chance.below(40);
    this.#fillMs = 80 + chance.below(800);
    this.#ownAsks = chance.is(0.1);
    this.#fleet = new Fleet(production, {
      burst,
      rate: burst,
      perMs: this.#fillMs,
      leaseMs: 60 + chance.below(chance.is(0.5) ? 300 : 2_000),
      deadlineMs: 20 + chance.below(80),
      seed,
      ...(profile === 'strict' && { policy: { storeLoss: 'strict' } }),
    });
    this.#fleet.newsFor = () => (chance.is(0.5) ? this.#fleet.news : undefined);
    this.#oracle = new FleetOracle(this.#fleet, !LOSSES.has(profile));
  }

  async play(): Promise<void> {
    const chance = this.#chance;
    const size = 2 + chance.below(3);
    for (let i = 0; i < size; i++) await this.#join(i);
    for (let step = 0; step < STEPS; step++) {
      if (chance.is(0.5)) this.#wait();
      await this.#step();
      this.#oracle.check();
    }
  }

  result(): Run {
    const { potential, rise, window } = this.#oracle;
    return {
      potential: potential / MICRO,
      window: window.worst / MICRO,
      rise: rise / MICRO,
      saturation: this.#fleet.total / window.available,
      calls: this.#calls,
    };
  }

  async #join(index: number): Promise<void> {
    const chance = this.#chance;
    const stale = chance.is(0.3);
    const instance = await this.#fleet.start({
      document: stale ? (this.#members[index]?.api.policy.document ?? this.#fleet.news) : this.#fleet.news,
      drift: (chance.next() - 0.5) * 0.02,
      originMs: chance.below(1e9),
      wallErrorMs: (chance.next() - 0.5) * 7_200_000,
    });
    this.#eager.set(instance, index > 0 && chance.is(0.5) ? 0.1 : 0.8);
    this.#members[index] = instance;
  }

  #wait(): void {
    const chance = this.#chance;
    const longest = chance.is(0.004) ? Math.max(this.#fleet.options.leaseMs, this.#fillMs, 1_500) : this.#fillMs / 12;
    this.#fleet.at(this.#fleet.now + 1 + chance.below(longest * 1_000) / 1_000);
    this.#sendOff();
  }

  /** Whatever was sent meanwhile runs at once, or late, or twice, or never; the drainer's calls mostly do. */
  #sendOff(): void {
    const chance = this.#chance;
    // An answer at once that says to ask at once would go round for ever: what is left waits for the next step.
    for (const message of this.#fleet.fresh.splice(0, MESSAGES_AT_ONCE)) {
      const drains = message.from === this.#members[0];
      const again = chance.is(drains ? 0.1 : 0.3);
      if (again) this.#late.push(message);
      if (chance.is(drains ? 0.98 : 0.7)) this.#run(message, drains ? 0.98 : 0.85);
      else if (!again) message.lost = true;
    }
  }

  #run(message: Message, answered: number): void {
    const chance = this.#chance;
    this.#calls += 1;
    const reply = message.execute();
    const deliver = (): void => message.deliver(reply);
    const now = chance.is(answered);
    if (now) deliver();
    if (!now || chance.is(0.1)) this.#lateReplies.push(deliver);
  }

  async #step(): Promise<void> {
    const chance = this.#chance;
    const drainer = this.#members[0] as Instance;
    const what = chance.next();
    const instance = chance.is(0.75) ? drainer : (chance.pick(this.#members) as Instance);
    if (this.#stalled(instance)) return;
    if (instance === drainer && what < 0.88) this.#drain(drainer);
    else if (what < 0.3) this.#spendSome(instance);
    else if (what < 0.62) this.#ask(instance);
    else if (what < 0.8) this.#lateMessage();
    else if (what < 0.9) take(chance, this.#lateReplies, 0.5)?.();
    else if (what < 0.91) await this.#restart(instance);
    else if (what < 0.917) this.#stall(instance);
    else if (what < 0.922) instance.wire.ready = instance === drainer;
    else if (what < 0.97) this.#fault();
    for (const member of this.#members) if (chance.is(0.3)) member.wire.ready = true;
  }

  /** Takes all there is, so that the fleet is always at its bound. */
  #drain(drainer: Instance): void {
    const everything = 1e6 * MICRO;
    drainer.spend();
    if (!this.#ownAsks) {
      drainer.ask = { need: everything, head: 1, want: 0, demand: 0 };
      drainer.pace = { next: 0, retry: 0, level: 0, horizon: 0, giveBack: false };
    }
    drainer.attempt();
    this.#sendOff();
    drainer.spend();
  }

  #spendSome(instance: Instance): void {
    const chance = this.#chance;
    if (!chance.is(this.#eager.get(instance) ?? 1)) return;
    instance.spend(chance.is(0.5) ? Number.POSITIVE_INFINITY : chance.below(5));
  }

  /** Makes a call to hold something, or for one that waits; how much, and what to keep, is chance. */
  #ask(instance: Instance): void {
    const chance = this.#chance;
    const burst = instance.fleet.options.burst;
    // What is fetched for callers that wait is spent as it arrives, and nobody waits here.
    const needs = this.#profile !== 'strict' && chance.is(0.4);
    const amount = (chance.is(0.93) ? chance.below(2 + burst / 8) : chance.below(2 * burst)) * MICRO;
    if (!this.#ownAsks) {
      const asks = { demand: 0, head: amount > 0 ? 1 : 0 };
      instance.ask = needs ? { ...asks, need: amount, want: 0 } : { ...asks, need: 0, head: 0, want: amount };
      const horizon = chance.is(0.4) ? 0 : 1e9;
      instance.pace = { next: 0, retry: 0, level: 0, horizon, giveBack: chance.is(0.3) };
    }
    if (chance.is(0.3)) {
      const cost = Math.min(instance.largestCost, 1 + chance.below(Math.max(1, burst / 3)));
      instance.act(() => {
        instance.api.acquire(KEY, { cost, maxWaitMs: chance.below(200) }).catch(() => {});
      });
    } else {
      const held = Math.floor(instance.live / MICRO);
      instance.attempt(Math.min(instance.largestCost, held + 1));
    }
    this.#sendOff();
  }

  #lateMessage(): void {
    const message = take(this.#chance, this.#late, 0.4);
    if (message) this.#run(message, 0.7);
  }

  async #restart(instance: Instance): Promise<void> {
    const index = this.#members.indexOf(instance);
    if (this.#chance.is(0.3)) {
      instance.act(() => void instance.limiter.close());
      this.#sendOff();
    }
    instance.crash();
    await this.#join(index);
  }

  #stalled(instance: Instance): boolean {
    return instance.stalledUntilUs > this.#fleet.time.us;
  }

  #stall(instance: Instance): void {
    const longest = instance === this.#members[0] ? this.#fillMs / 8 : 2 * this.#fleet.options.leaseMs;
    instance.stalledUntilUs = this.#fleet.time.us + this.#chance.below(longest * 1_000);
  }

  #fault(): void {
    const chance = this.#chance;
    switch (this.#profile) {
      case 'skew': {
        const ms = 1 + chance.below(SKEW_MS);
        if (chance.is(0.6)) this.#stepBack(ms);
        else this.#stepForward(ms);
        break;
      }
      case 'steps': {
        if (this.#faults++ >= 4) break;
        const ms = SKEW_MS + chance.below(8_000);
        if (chance.is(0.5)) this.#stepBack(ms);
        else this.#stepForward(ms);
        break;
      }
      case 'policy':
        if (this.#faults++ < 5) this.#publish();
        break;
      case 'loss':
        if (this.#faults++ >= 2) break;
        this.#oracle.forgets();
        this.#fleet.store.lose();
        break;
      case 'strict':
        if (this.#faults++ >= 2) break;
        this.#oracle.forgetsStrictly();
        this.#fleet.store.lose();
        break;
      case 'failover':
        if (!this.#snapshot || chance.is(0.5)) {
          this.#snapshot = this.#fleet.store.snapshot();
        } else if (this.#faults++ < 2) {
          this.#oracle.forgets();
          this.#fleet.store.failover(this.#snapshot);
          this.#snapshot = undefined;
          this.#oracle.stored();
        }
        break;
      case 'evicted':
        if (this.#faults++ >= 3 || !this.#fleet.partition) break;
        this.#oracle.loosesKey();
        this.#fleet.partition.buckets.clear();
        break;
      case 'pure':
        break;
    }
  }

  #stepBack(ms: number): void {
    // A message that is late by just as much as the clock steps back looks young again: that bound is stated, not 0.
    if (ms > SKEW_MS) for (const message of this.#late.splice(0)) message.lost = true;
    this.#fleet.time.storeOffsetUs -= ms * 1_000;
  }

  #stepForward(ms: number): void {
    this.#oracle.stepsForward(ms);
    this.#fleet.time.storeOffsetUs += ms * 1_000;
  }

  /** A new policy; whoever hears of it hears it now. */
  #publish(): void {
    const chance = this.#chance;
    const burst = 2 + chance.below(60);
    const inheritance = chance.is(0.6)
      ? 'as-is'
      : (chance.pick(['proportional', 'additive', 'reset'] as const) ?? 'as-is');
    const news: PolicyDocument = {
      ...this.#fleet.news,
      name: POLICY,
      version: (this.#fleet.news.version ?? 0) + 1,
      inheritance,
      ceiling: { rate: burst, burst, per: 80 + chance.below(chance.is(0.3) ? 12_000 : 800) },
    };
    this.#fleet.news = news;
    if (chance.is(0.5)) this.#fleet.otherKeyHears(news);
    for (const member of this.#members) if (chance.is(0.5)) member.hears(news);
    this.#sendOff();
  }
}

/** One of a list, the last more often than others, and taken out or not. */
function take<T>(chance: Chance, list: T[], takenOut: number): T | undefined {
  if (list.length === 0) return undefined;
  const index = chance.is(0.55) ? list.length - 1 : chance.below(list.length);
  const [item] = chance.is(takenOut) ? list.splice(index, 1) : list.slice(index, index + 1);
  return item;
}
