import type { MicroTokens, Milliseconds } from '../units.js';
import { exactWait } from './wait.js';

/**
 * At most `limit` in every window of `windowMs`, wherever it begins. Exact, and the price of that is memory: one entry for
 * each charge of the last window, so up to `limit` ÷ the usual cost of them for each key.
 */
export interface SlidingWindowLogTerms {
  readonly limit: MicroTokens;
  readonly windowMs: Milliseconds;
}

/** The charges of the last window, oldest first, from `first` on; what lies before has left it. */
export interface SlidingWindowLog {
  times: Milliseconds[];
  costs: MicroTokens[];
  first: number;
  /** Sum of the costs from `first` on. */
  used: MicroTokens;
}

/** Entries that have left are cut off when there are this many, and as many as those that are still in. */
const LEFT_BEHIND = 32;

export function newSlidingWindowLog(): SlidingWindowLog {
  return { times: [], costs: [], first: 0, used: 0 };
}

/** What is left at `now`. A charge has left the window once it is `windowMs` old. */
export function levelAt(log: SlidingWindowLog, terms: SlidingWindowLogTerms, now: Milliseconds): MicroTokens {
  let { used } = log;
  for (let i = log.first; i < log.times.length && hasLeft(log, terms, i, now); i++) used -= log.costs[i] as number;
  return Math.max(0, terms.limit - used);
}

/** Charges `cost`, which has been seen to be there. */
export function take(log: SlidingWindowLog, terms: SlidingWindowLogTerms, cost: MicroTokens, now: Milliseconds): void {
  forget(log, terms, now);
  const last = log.times.length - 1;
  // A clock set back: as if at the time of the last charge, so that the log stays in order and nothing leaves early.
  const at = last >= log.first ? Math.max(now, log.times[last] as number) : now;
  if (last >= log.first && log.times[last] === at) {
    log.costs[last] = (log.costs[last] as number) + cost;
  } else {
    log.times.push(at);
    log.costs.push(cost);
  }
  log.used += cost;
}

/**
 * Takes back up to `cost` of the charges that are still in the window, the oldest first: it is not said which of them did
 * not come about, and were it one of those, a later one taken back would leave the window too soon.
 */
export function putBack(
  log: SlidingWindowLog,
  terms: SlidingWindowLogTerms,
  cost: MicroTokens,
  now: Milliseconds,
): void {
  forget(log, terms, now);
  let rest = cost;
  for (let i = log.first; i < log.times.length && rest > 0; i++) {
    const back = Math.min(rest, log.costs[i] as number);
    log.costs[i] = (log.costs[i] as number) - back;
    log.used -= back;
    rest -= back;
  }
}

/** Whole milliseconds until `cost`, which is at most `limit`, is there if nobody else takes any; 0 if it is. Exact. */
export function waitFor(
  log: SlidingWindowLog,
  terms: SlidingWindowLogTerms,
  cost: MicroTokens,
  now: Milliseconds,
): Milliseconds {
  let level = terms.limit - log.used;
  let i = log.first;
  while (level < cost && i < log.times.length) level += log.costs[i++] as number;
  if (i === log.first || hasLeft(log, terms, i - 1, now)) return 0;
  const leaves = (log.times[i - 1] as number) + terms.windowMs;
  return exactWait(leaves - now, now, (at) => hasLeft(log, terms, i - 1, at));
}

function hasLeft(log: SlidingWindowLog, terms: SlidingWindowLogTerms, i: number, now: Milliseconds): boolean {
  return now - (log.times[i] as number) >= terms.windowMs;
}

function forget(log: SlidingWindowLog, terms: SlidingWindowLogTerms, now: Milliseconds): void {
  while (log.first < log.times.length && hasLeft(log, terms, log.first, now)) {
    log.used -= log.costs[log.first] as number;
    log.first += 1;
  }
  if (log.first < LEFT_BEHIND || log.first * 2 < log.times.length) return;
  log.times.splice(0, log.first);
  log.costs.splice(0, log.first);
  log.first = 0;
}
