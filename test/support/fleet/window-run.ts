import type { MemoryCeiling } from '../../../src/ceiling/memory-ceiling.js';
import type { PolicyDocument, TierDocument } from '../../../src/policy/policy.js';
import { MICRO, MICROS_PER_MS, type Microseconds, type MicroTokens, type Milliseconds } from '../../../src/units.js';
import { Chance } from './chance.js';
import { Fleet } from './fleet.js';
import type { Instance } from './instance.js';
import type { Production } from './production.js';
import type { Message } from './wire.js';

export type WindowAlgorithm = 'fixed-window' | 'sliding-window-log' | 'sliding-window-counter';

/** What else befalls a run: the store's data is lost, its clock wanders as far as is allowed, or steps further, once. */
export type WindowTrouble = 'none' | 'losses' | 'skew' | 'step';

/** How far a run under windows went over its law, in tokens, and how hard the fleet was driven. */
export interface WindowResult {
  readonly over: number;
  /** Admitted ÷ limit × windows. */
  readonly saturation: number;
  readonly limit: number;
  /** Most that was admitted in any span of a window's length. */
  readonly inAnyWindow: number;
  /** What was in wallets when the store's clock stepped; 0 where it did not. */
  readonly atStep: number;
}

/** One admission, on the store's clock, of which steps back are left out. */
interface Admission {
  readonly at: Microseconds;
  /** By the true time, which nobody in the fleet knows. */
  readonly trueAt: Microseconds;
  readonly tokens: MicroTokens;
  /** Which of the windows that begin at multiples of their length; those after a step back are others. */
  readonly window: string;
}

const STEPS = 400;
/** What the store's clock may be off by: `maxSkew`, and under fixed windows the edge of 1 % of them. */
const SKEW_MS: Milliseconds = 100;
const EDGE = 0.01;
const LONGEST_STEP_MS: Milliseconds = 8_000;

/**
 * One random life of a fleet under a ceiling of windows: seeded; calls and replies lost, late, doubled and out of order,
 * crashes, stalls, drift, and whatever `trouble` says. Every admission is written down, and held against the law of its
 * algorithm.
 */
export async function windowRun(
  seed: number,
  algorithm: WindowAlgorithm,
  production: Production,
  trouble: WindowTrouble = 'none',
): Promise<WindowResult> {
  const run = new WindowRun(seed, algorithm, production, trouble);
  await run.play();
  return run.result();
}

class WindowRun {
  readonly #chance: Chance;
  readonly #algorithm: WindowAlgorithm;
  readonly #trouble: WindowTrouble;
  readonly #fleet: Fleet;
  readonly #limit: number;
  readonly #windowMs: Milliseconds;
  readonly #admissions: Admission[] = [];
  readonly #late: Message[] = [];
  readonly #lateReplies: (() => void)[] = [];
  #members: Instance[] = [];
  #snapshot: ReturnType<MemoryCeiling['snapshot']> | undefined;
  #startedAt: Microseconds = 0;
  /** Latest that the store's clock has shown, since it stepped back where it did. */
  #latest: Microseconds = 0;
  #steppedBackUs: Microseconds = 0;
  /** The window that was under way at the step back, and the one that the clock then stood in: they are one. */
  #landed: { from: string; at: number } | undefined;
  #stepAt: number | undefined;
  #atStep: MicroTokens = 0;

  constructor(seed: number, algorithm: WindowAlgorithm, production: Production, trouble: WindowTrouble) {
    const chance = new Chance(seed);
    this.#chance = chance;
    this.#algorithm = algorithm;
    this.#trouble = trouble;
    this.#limit = 4 + chance.below(40);
    this.#windowMs = 200 + chance.below(2_000);
    const ceiling: TierDocument = { algorithm, limit: this.#limit, window: this.#windowMs };
    this.#fleet = new Fleet(production, {
      ...{ burst: this.#limit, rate: this.#limit, perMs: this.#windowMs },
      leaseMs: 60 + chance.below(chance.is(0.5) ? 300 : 2_000),
      deadlineMs: 20 + chance.below(80),
      seed,
      policy: { ceiling, storeLoss: 'strict' } as Partial<PolicyDocument>,
    });
    this.#fleet.witness = {
      admitted: (tokens) => {
        const at = this.#read() + this.#steppedBackUs;
        this.#admissions.push({ at, trueAt: this.#fleet.time.us, tokens, window: this.#window });
      },
      stored: () => {},
    };
  }

  async play(): Promise<void> {
    const chance = this.#chance;
    const size = 2 + chance.below(3);
    for (let i = 0; i < size; i++) await this.#join(i);
    this.#startedAt = this.#fleet.time.storeNow();
    if (this.#trouble === 'step') this.#stepAt = STEPS / 4 + chance.below(STEPS / 2);
    for (let step = 0; step < STEPS; step++) {
      if (step === this.#stepAt) this.#stepClock();
      if (chance.is(0.5)) this.#wait();
      await this.#step();
    }
  }

  result(): WindowResult {
    const lengthUs = this.#windowMs * MICROS_PER_MS;
    const limit = this.#limit * MICRO;
    const admitted = this.#admissions.reduce((sum, { tokens }) => sum + tokens, 0);
    const windows = (this.#fleet.time.storeNow() - this.#startedAt) / lengthUs;
    const inAnyWindow = mostWithin(this.#admissions, lengthUs, ({ at }) => at);
    // By a clock that may gain so much, windows are as much shorter.
    const inShorter = mostWithin(this.#admissions, lengthUs - SKEW_MS * MICROS_PER_MS, ({ trueAt }) => trueAt);
    const wanders = this.#trouble === 'skew';
    const most = {
      'fixed-window': () => mostOfOneWindow(this.#admissions),
      'sliding-window-log': () => (wanders ? inShorter : inAnyWindow),
      'sliding-window-counter': () => (wanders ? inShorter / 2 : mostEstimated(this.#admissions, lengthUs)),
    }[this.#algorithm]();
    return {
      over: (most - limit) / MICRO,
      saturation: admitted / (limit * windows),
      limit: this.#limit,
      inAnyWindow: inAnyWindow / MICRO,
      atStep: this.#atStep / MICRO,
    };
  }

  #read(): Microseconds {
    this.#latest = Math.max(this.#latest, this.#fleet.time.storeNow());
    return this.#latest;
  }

  get #window(): string {
    const index = Math.floor(this.#read() / (this.#windowMs * MICROS_PER_MS));
    if (!this.#landed) return `${index}`;
    return index === this.#landed.at ? this.#landed.from : `${index} anew`;
  }

  async #join(index: number): Promise<void> {
    const chance = this.#chance;
    this.#members[index] = await this.#fleet.start({
      drift: (chance.next() - 0.5) * 0.02,
      originMs: chance.below(1e9),
      wallErrorMs: (chance.next() - 0.5) * 7_200_000,
    });
  }

  #wait(): void {
    const longest = this.#chance.is(0.02) ? this.#windowMs : this.#windowMs / 12;
    this.#fleet.at(this.#fleet.now + 1 + this.#chance.below(longest * 1_000) / 1_000);
    this.#sendOff();
  }

  #sendOff(): void {
    const chance = this.#chance;
    for (const message of this.#fleet.fresh.splice(0, 4)) {
      const again = chance.is(0.2);
      if (again) this.#late.push(message);
      if (chance.is(0.85)) this.#run(message);
      else if (!again) message.lost = true;
    }
  }

  #run(message: Message): void {
    const chance = this.#chance;
    const reply = message.execute();
    const deliver = (): void => message.deliver(reply);
    const now = chance.is(0.9);
    if (now) deliver();
    if (!now || chance.is(0.1)) this.#lateReplies.push(deliver);
  }

  async #step(): Promise<void> {
    const chance = this.#chance;
    const instance = chance.is(0.6) ? (this.#members[0] as Instance) : (chance.pick(this.#members) as Instance);
    if (instance.stalledUntilUs > this.#fleet.time.us) return;
    const what = chance.next();
    if (what < 0.45) this.#drain(instance);
    else if (what < 0.6) instance.spend(chance.below(5));
    else if (what < 0.75) this.#hold(instance);
    else if (what < 0.85) this.#lateMessage();
    else if (what < 0.92) take(chance, this.#lateReplies)?.();
    else if (what < 0.935) await this.#restart(instance);
    else if (what < 0.96) instance.stalledUntilUs = this.#fleet.time.us + chance.below(this.#windowMs * 1_500);
    else if (what < 0.98 && this.#trouble === 'losses') this.#fault();
    else if (what < 0.98 && this.#trouble === 'skew') this.#wander();
  }

  #drain(instance: Instance): void {
    instance.spend();
    instance.ask = { need: 1e6 * MICRO, head: 1, want: 0, demand: 0 };
    instance.pace = { next: 0, retry: 0, level: 0, horizon: 0, giveBack: false };
    instance.attempt();
    this.#sendOff();
    instance.spend();
  }

  /** Fetches some to be held; much of it may never be spent. */
  #hold(instance: Instance): void {
    instance.ask = { need: 0, head: 0, want: (1 + this.#chance.below(this.#limit)) * MICRO, demand: 0 };
    instance.pace = { next: 0, retry: 0, level: 0, horizon: 1e9, giveBack: this.#chance.is(0.3) };
    instance.attempt(Math.min(instance.largestCost, Math.floor(instance.live / MICRO) + 1));
    this.#sendOff();
  }

  #lateMessage(): void {
    const message = take(this.#chance, this.#late);
    if (message) this.#run(message);
  }

  async #restart(instance: Instance): Promise<void> {
    if (this.#chance.is(0.3)) {
      instance.act(() => void instance.limiter.close());
      this.#sendOff();
    }
    instance.crash();
    await this.#join(this.#members.indexOf(instance));
  }

  #fault(): void {
    const { store } = this.#fleet;
    if (this.#chance.is(0.3)) store.lose();
    else if (!this.#snapshot) this.#snapshot = store.snapshot();
    else {
      store.failover(this.#snapshot);
      this.#snapshot = undefined;
    }
  }

  /** The store's clock goes back and forth within what is allowed. */
  #wander(): void {
    const { time } = this.#fleet;
    const ms = this.#algorithm === 'fixed-window' ? Math.min(SKEW_MS, this.#windowMs * EDGE) : SKEW_MS;
    this.#read();
    time.storeOffsetUs = this.#chance.below(ms * MICROS_PER_MS);
  }

  /** It steps further than that. Messages from before are lost: one that is late by just as much would look young again. */
  #stepClock(): void {
    const chance = this.#chance;
    for (const message of [...this.#late.splice(0), ...this.#fleet.fresh.splice(0)]) message.lost = true;
    this.#lateReplies.length = 0;
    this.#atStep = this.#members.reduce((sum, member) => sum + member.live, 0);
    const us = (SKEW_MS + 1 + chance.below(LONGEST_STEP_MS)) * MICROS_PER_MS;
    const from = this.#window;
    if (chance.is(0.5)) {
      this.#fleet.time.storeOffsetUs += us;
      return;
    }
    this.#fleet.time.storeOffsetUs -= us;
    const now = this.#fleet.time.storeNow();
    this.#steppedBackUs += this.#latest - now;
    this.#latest = now;
    this.#landed = { from, at: Math.floor(now / (this.#windowMs * MICROS_PER_MS)) };
  }
}

/** Most in one window of those that begin at multiples of the length. */
function mostOfOneWindow(admissions: readonly Admission[]): MicroTokens {
  const counts = new Map<string, MicroTokens>();
  for (const { window, tokens } of admissions) counts.set(window, (counts.get(window) ?? 0) + tokens);
  return Math.max(0, ...counts.values());
}

/** Most in any (t − length, t]. */
function mostWithin(
  admissions: readonly Admission[],
  length: Microseconds,
  timeOf: (admission: Admission) => Microseconds,
): MicroTokens {
  let [first, sum, most] = [0, 0, 0];
  for (const admission of admissions) {
    sum += admission.tokens;
    for (; timeOf(admissions[first] as Admission) <= timeOf(admission) - length; first++) {
      sum -= (admissions[first] as Admission).tokens;
    }
    most = Math.max(most, sum);
  }
  return most;
}

/** Most by the estimate of two counts, at any admission. */
function mostEstimated(admissions: readonly Admission[], length: Microseconds): MicroTokens {
  const counts = new Map<number, number>();
  let most = 0;
  for (const { at, tokens } of admissions) {
    const index = Math.floor(at / length);
    counts.set(index, (counts.get(index) ?? 0) + tokens);
    const left = 1 - (at - index * length) / length;
    most = Math.max(most, (counts.get(index) ?? 0) + (counts.get(index - 1) ?? 0) * left);
  }
  return most;
}

function take<T>(chance: Chance, list: T[]): T | undefined {
  if (list.length === 0) return undefined;
  const index = chance.is(0.55) ? list.length - 1 : chance.below(list.length);
  const [item] = chance.is(0.4) ? list.splice(index, 1) : list.slice(index, index + 1);
  return item;
}
