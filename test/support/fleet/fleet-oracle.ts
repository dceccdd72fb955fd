import { leaseGrace } from '../../../src/ceiling/ceiling-store.js';
import { heldReady } from '../../../src/ceiling/guard.js';
import { MICROS_PER_MS, type MicroTokens } from '../../../src/units.js';
import { BUCKET, POLICY, termsOf } from './bucket-view.js';
import type { Fleet, Witness } from './fleet.js';
import type { Instance } from './instance.js';
import { sameTerms, WindowOracle } from './window-oracle.js';

/** Micro-tokens by which the arithmetic of an oracle (floating point, whole microseconds) may be off. */
export const ROUNDING: MicroTokens = 20;

/**
 * What must hold at every step of a fleet's life, as the proof in `docs/design.md` has it:
 *
 * - **potential**: Φ = T (as the next call would find it) + U (what instances could spend) ≤ B + the stated slack;
 * - **window**: every window is within its bound;
 * - **rise**: Φ, with what may still come back to T, rises by no more than R·dt − admitted. It sees a token minted where
 *   nobody spends it yet, but does not hold across a loss of the store's data, where holders re-register.
 *
 * Each is kept as the most it was exceeded by, in micro-tokens.
 */
export class FleetOracle implements Witness {
  readonly window: WindowOracle;
  potential: MicroTokens = Number.NEGATIVE_INFINITY;
  rise: MicroTokens = Number.NEGATIVE_INFINITY;
  readonly #fleet: Fleet;
  readonly #watchRise: boolean;
  /** Of the fence as it was last seen. */
  #version: number;
  #burst: MicroTokens;
  /** By changes of which the key has not heard yet. */
  #handedOut: MicroTokens = 0;
  #slack: MicroTokens = 0;
  #slackUntil = 0;
  #faults = 0;
  #last = { mark: '', sum: 0, total: 0, us: 0 };

  constructor(fleet: Fleet, watchRise: boolean) {
    this.#fleet = fleet;
    this.#watchRise = watchRise;
    const terms = termsOf(fleet.news);
    this.window = new WindowOracle(fleet.time.us, terms);
    this.#version = terms.version;
    this.#burst = terms.burst;
    fleet.witness = this;
  }

  admitted(tokens: MicroTokens): void {
    this.window.admitted(this.#fleet.time.us, tokens);
  }

  stored(): void {
    const { partition, time } = this.#fleet;
    const fence = partition?.fences.get(POLICY);
    if (!partition || !fence) return;
    const terms = { burst: fence.burst, rateNum: fence.rateNum, rateDen: fence.rateDen };
    if (fence.version !== this.#version) {
      // What this change hands out by its inheritance rule, at most: to the untouched bucket now, to a key's when it hears.
      const raise = Math.max(0, fence.burst - this.#burst);
      this.#handedOut += { 'as-is': 0, proportional: raise, additive: raise, reset: fence.burst }[fence.inheritance];
      this.#version = fence.version;
      this.#burst = fence.burst;
    }
    const bucket = partition.buckets.get(BUCKET);
    const alive = bucket !== undefined && bucket.expiresAt > time.storeNow();
    if (alive && (bucket.version !== fence.version || !sameTerms(bucket, fence))) {
      this.window.fenced(time.us, terms);
      return;
    }
    const over = alive ? Math.max(0, bucket.outstanding - bucket.burst) : 0;
    this.window.changed(time.us, terms, over, this.#handedOut);
    this.#handedOut = 0;
  }

  /** The store's clock steps forward: what it mints at once, and leases it ends early (design, section 2). */
  stepsForward(ms: number): void {
    const minted = Math.min(ms * MICROS_PER_MS * this.window.rate, this.window.burst);
    this.#fault(minted + this.#endedEarly());
  }

  /** The store loses its data, or goes on from older data: wallets that it no longer knows of. */
  forgets(): void {
    this.#fault(this.#endedEarly());
  }

  /**
   * The same under the strict rule: only what was under way to waiting callers, or came too late for them, counts.
   */
  forgetsStrictly(): void {
    let usable = 0;
    for (const instance of this.#fleet.instances) usable += usableBy(instance);
    this.#fault(Math.max(0, usable - heldReady(this.window.burst)));
  }

  /** One key is gone while it was certain to exist (design, section 6: at most B for that key). */
  loosesKey(): void {
    this.#fault(this.window.burst + this.#endedEarly());
  }

  check(): void {
    const { time, partition, total } = this.#fleet;
    this.window.move(time.us);
    const tokens = this.#fleet.tokens;
    let usable = 0;
    for (const instance of this.#fleet.instances) usable += usableBy(instance);
    if (time.us >= this.#slackUntil) this.#slack = 0;
    const bucket = partition?.buckets.get(BUCKET);
    const alive = bucket !== undefined && bucket.expiresAt > time.storeNow();
    const burst = partition?.fences.get(POLICY)?.burst ?? this.window.burst;
    this.potential = Math.max(this.potential, tokens + usable - burst - this.#slack);

    const sum = this.#fleet.tokensCredited + usable + (alive ? comingBack(this.#fleet) : 0);
    const { rate, burst: watched, betweenTerms } = this.window;
    // Between a move of the fence and the key's first call after it, what is credited late would count under both terms.
    const mark = `${this.#faults}:${watched}:${rate}:${betweenTerms}:${time.storeOffsetUs}`;
    const last = this.#last;
    if (this.#watchRise && mark === last.mark && !betweenTerms && time.us >= this.#slackUntil) {
      const rise = sum - last.sum + (total - last.total) - (time.us - last.us) * rate;
      this.rise = Math.max(this.rise, rise);
    }
    this.#last = { mark, sum, total, us: time.us };
  }

  #endedEarly(): MicroTokens {
    let usable = 0;
    for (const instance of this.#fleet.instances) usable += usableBy(instance);
    return Math.min(usable, this.#fleet.options.leaseMs * MICROS_PER_MS * this.window.rate);
  }

  #fault(slack: MicroTokens): void {
    const { us } = this.#fleet.time;
    const leaseUs = this.#fleet.options.leaseMs * MICROS_PER_MS;
    this.#faults += 1;
    if (us >= this.#slackUntil) this.#slack = 0;
    this.#slack += slack;
    this.#slackUntil = us + leaseUs + leaseGrace(leaseUs) + 1_000;
    this.window.allow(us, slack, this.#slackUntil);
  }
}

/** What an instance could spend: its live wallet, and what a reply that it would still take brings. */
export function usableBy(instance: Instance): MicroTokens {
  const { account } = instance;
  if (instance.dead || !account) return 0;
  const { flight } = account;
  let coming = 0;
  if (flight && instance.time.now() < flight.sentAt + flight.leaseMs * 0.99) {
    for (const message of instance.sent) if (message.call.seq === flight.seq) coming = message.granted;
  }
  return instance.live + coming;
}

/** What the store may yet credit to T: grants that may be disowned, and returns under way. At most what is outstanding. */
function comingBack({ partition, instances, time }: Fleet): MicroTokens {
  const bucket = partition?.buckets.get(BUCKET);
  if (!bucket) return 0;
  let sum = 0;
  for (const instance of instances) {
    const record = bucket.holders.get(instance.holder);
    if (!record || record.outstanding === 0 || record.leaseEnd <= time.storeNow()) continue;
    let credit = 0;
    let disowned = false;
    for (const { call, lost } of instance.sent) {
      if (lost || call.seq <= record.seq) continue;
      credit += call.returned;
      if (call.disown > 0 && call.disown <= record.seq) disowned = true;
    }
    const account = instance.dead ? undefined : instance.account;
    const flight = account?.flight;
    if (flight && record.seq === flight.seq) {
      disowned = instance.time.now() >= flight.sentAt + flight.leaseMs * 0.99;
    } else if (account && account.disown > 0 && record.seq >= account.disown) {
      disowned = true;
    }
    if (disowned) credit += record.lastGrant;
    sum += Math.min(credit, record.outstanding);
  }
  return sum;
}
