import { type CounterName, NO_COUNTS, type Readings } from './observer.js';

const COUNTER_NAMES = Object.keys(NO_COUNTS) as CounterName[];

/** The counters and gauges of one policy name, over all limiters of the process. */
export interface PolicyTotals extends Record<CounterName, number> {
  tokensHeld: number;
  keys: number;
  waiting: number;
  seats: number;
  /** The most that any limiter knows: all of them know of the same blocks. */
  blocked: number;
  degradedLimiters: number;
  /** The lowest any limiter has, so that one that lags shows; `undefined` where none has the policy any more. */
  version: number | undefined;
}

/** Policy names whose counts outlive their limiters. A program that makes names up without end must not fill memory. */
const MOST_DEPARTED = 1_000;

/**
 * Adds the readings of several limiters up by policy name. What a limiter counted stays in the sums after it has left:
 * a counter must not go down, and a process that closes its limiter just before its last export still exports it.
 */
export class TotalsByPolicy {
  readonly #present = new Set<Readings>();
  readonly #departed = new Map<string, Record<CounterName, number>>();

  get empty(): boolean {
    return this.#present.size === 0;
  }

  add(readings: Readings): void {
    this.#present.add(readings);
  }

  remove(readings: Readings): void {
    if (!this.#present.delete(readings)) return;
    for (const counters of readings.counters()) {
      let departed = this.#departed.get(counters.policy);
      if (!departed) {
        if (this.#departed.size >= MOST_DEPARTED) continue;
        departed = { ...NO_COUNTS };
        this.#departed.set(counters.policy, departed);
      }
      for (const name of COUNTER_NAMES) departed[name] += counters[name];
    }
  }

  read(): Map<string, PolicyTotals> {
    const totals = new Map<string, PolicyTotals>();
    for (const [policy, counts] of this.#departed) addCounts(totalsOf(totals, policy), counts);
    for (const readings of this.#present) {
      for (const counters of readings.counters()) addCounts(totalsOf(totals, counters.policy), counters);
      for (const gauges of readings.gauges()) {
        const sum = totalsOf(totals, gauges.policy);
        sum.tokensHeld += gauges.tokensHeld;
        sum.keys += gauges.keys;
        sum.waiting += gauges.waiting;
        sum.seats += gauges.seats;
        sum.blocked = Math.max(sum.blocked, gauges.blocked);
        if (gauges.degraded) sum.degradedLimiters += 1;
        sum.version = Math.min(sum.version ?? gauges.version, gauges.version);
      }
    }
    return totals;
  }
}

function totalsOf(totals: Map<string, PolicyTotals>, policy: string): PolicyTotals {
  let sum = totals.get(policy);
  if (!sum) {
    sum = {
      ...NO_COUNTS,
      tokensHeld: 0,
      keys: 0,
      waiting: 0,
      seats: 0,
      blocked: 0,
      degradedLimiters: 0,
      version: undefined,
    };
    totals.set(policy, sum);
  }
  return sum;
}

function addCounts(sum: PolicyTotals, counts: Readonly<Record<CounterName, number>>): void {
  for (const name of COUNTER_NAMES) sum[name] += counts[name];
}
