import { MICRO, type Milliseconds, type Tokens } from '../../../src/units.js';
import { BUCKET, POLICY } from './bucket-view.js';
import { Fleet, type FleetOptions } from './fleet.js';
import { FleetOracle } from './fleet-oracle.js';
import type { Instance } from './instance.js';
import type { Production } from './production.js';
import type { Message } from './wire.js';

/** What a call of a directed history asks for, in tokens; `keep`: what is left in the wallet, the rest is given back. */
export interface Wish {
  readonly need?: Tokens;
  readonly want?: Tokens;
  readonly keep?: Tokens;
}

/** More than any bucket of a history holds. */
export const EVERYTHING: Tokens = 1e9;

/**
 * A fleet for a history told step by step: B = 100 tokens, R = 1 a millisecond, leases of 1,000 ms, deadlines of 40 ms
 * unless said otherwise. So a wallet lives for 990 ms, and the store ends the lease 1,110 ms after the call ran.
 */
export class Stage {
  readonly fleet: Fleet;
  readonly oracle: FleetOracle;

  constructor(production: Production, options: Partial<FleetOptions> = {}) {
    this.fleet = new Fleet(production, {
      burst: 100,
      rate: 100,
      perMs: 100,
      leaseMs: 1_000,
      deadlineMs: 40,
      ...options,
    });
    this.oracle = new FleetOracle(this.fleet, false);
  }

  /** A new limiter of the product. */
  join(options: Parameters<Fleet['start']>[0] = {}): Promise<Instance> {
    return this.fleet.start(options);
  }

  /**
   * Moves on to `ms`. Whoever holds tokens keeps them: it neither renews its lease meanwhile nor gives anything back for
   * want of traffic. Whoever waits for an answer gives it up when its time has come.
   */
  at(ms: Milliseconds): void {
    const until = ms * 1_000 + 1;
    const keep = this.fleet.instances.filter((one) => one.calm && !one.account?.flight && one.stalledUntilUs < until);
    for (const instance of keep) instance.stalledUntilUs = until;
    this.fleet.at(ms);
    for (const { account, time } of this.fleet.instances) if (account) account.activeAt = time.now();
    for (const instance of keep) instance.stalledUntilUs = 0;
  }

  /** Moves on to `ms`, without any traffic. */
  idleUntil(ms: Milliseconds): void {
    this.fleet.at(ms);
  }

  /** Makes `instance` send a call; nothing has become of it yet. */
  send(instance: Instance, { need = 0, want = 0, keep }: Wish = {}): Message {
    const { account } = instance;
    instance.calm = true;
    instance.ask = { need: need * MICRO, head: need > 0 ? 1 : 0, want: want * MICRO, demand: 0 };
    instance.pace = { next: 0, retry: 0, level: 0, horizon: 1e9, giveBack: false };
    if (keep !== undefined && account) {
      account.giveBack = true;
      account.lowWater = keep * MICRO;
    }
    if (instance.live >= instance.largestCost * MICRO)
      throw new Error('It holds a whole burst: it would spend, not call.');
    instance.attempt(instance.largestCost);
    instance.ask = { need: 0, head: 0, want: 0, demand: 0 };
    return this.taken(instance);
  }

  /** Lets time pass until `instance` sends a call: by itself, as after one that was given up, or since it is asked. */
  next(instance: Instance, { keep, asking = false }: Pick<Wish, 'keep'> & { asking?: boolean } = {}): Message {
    const { account } = instance;
    if (keep !== undefined && account) {
      account.giveBack = true;
      account.lowWater = keep * MICRO;
    }
    this.fleet.fresh.length = 0;
    for (let i = 0; i < 1_000; i++) {
      if (this.fleet.fresh.some(({ from }) => from === instance)) return this.taken(instance);
      if (account) account.activeAt = instance.time.now();
      this.fleet.at(this.fleet.now + 1);
      if (asking) instance.attempt(instance.largestCost);
    }
    throw new Error('Expected a call within a second.');
  }

  /** The last message that `instance` sent, of its own or on demand. */
  taken(instance: Instance): Message {
    const message = this.fleet.fresh.filter(({ from }) => from === instance).at(-1);
    if (!message) throw new Error('Expected a call to have been sent.');
    this.fleet.fresh.length = 0;
    return message;
  }

  /** Gets `need` tokens if they are there, at once; answers how many came. */
  draw(instance: Instance, need: Tokens): Tokens {
    const before = instance.live;
    this.send(instance, { need }).exchange();
    return (instance.live - before) / MICRO;
  }

  /** Gets all there is and spends all it has; answers how much that was. */
  drain(instance: Instance): Tokens {
    if (instance.live < instance.largestCost * MICRO) this.draw(instance, EVERYTHING);
    return instance.spend();
  }

  /** Reports what it holds. */
  report(instance: Instance): void {
    this.send(instance).exchange();
  }

  stall(instance: Instance, untilMs: Milliseconds): void {
    instance.stalledUntilUs = untilMs * 1_000;
  }

  /** The store's clock steps by `ms`, forward or back. */
  step(ms: Milliseconds): void {
    this.fleet.time.storeOffsetUs += ms * 1_000;
  }

  /** Tokens by which some window was over its bound; 0 where none was. */
  get over(): Tokens {
    return Math.max(0, this.oracle.window.worst / MICRO);
  }

  /** T, as the next call would find it. */
  get tokens(): Tokens {
    return this.fleet.tokens / MICRO;
  }

  get outstanding(): Tokens {
    return (this.fleet.partition?.buckets.get(BUCKET)?.outstanding ?? 0) / MICRO;
  }

  /** Removes the key from the store, as an eviction does. */
  evict(): void {
    this.fleet.partition?.buckets.delete(BUCKET);
  }

  /** A policy under the next version, with other terms; nobody has heard of it yet. */
  publish(ceiling: { burst: Tokens; rate: Tokens; per: Milliseconds }, more: object = {}): void {
    const version = (this.fleet.news.version ?? 0) + 1;
    this.fleet.news = { ...this.fleet.news, ...more, name: POLICY, version, ceiling };
  }
}

/** A history told step by step, and how far it went over its bound: in tokens, or in what `unit` says. 0: it kept it. */
export interface History {
  /** The rule of `docs/design.md` that it shows, and what it shows. */
  readonly rule: string;
  readonly shows: string;
  readonly unit?: string;
  run(production: Production): Promise<number>;
}

/** Tokens that rounding may cost a history. */
export const SLIP: Tokens = 0.001;
