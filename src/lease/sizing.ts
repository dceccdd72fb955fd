import { MICRO, type MicroTokens, type Milliseconds } from '../units.js';

/** Over how long demand is averaged at least: short enough to follow a step of load within a second. */
const DEMAND_WINDOW_MS: Milliseconds = 500;
/** A key that is rarely asked for is averaged over so many of its calls, so that one of them is not taken for many. */
const INTERVALS_A_WINDOW = 3;
/** And over how long at most. */
const LONGEST_WINDOW_MS: Milliseconds = 600_000;
/** Demand is never measured over less than this, so that one request is not taken for a torrent. */
const SHORTEST_MEASURE_MS: Milliseconds = 250;
/** A batch smaller than this is not worth holding: it would strand the last tokens of a small ceiling. */
const SMALLEST_BATCH: MicroTokens = 1.5 * MICRO;
/** How much of its share a holder asks for at most, where it is held to one. */
const BATCH_OF_SHARE = 1.5;
/** Renewal starts when this fraction of a batch is left, or less than is asked for during a round trip. */
const LOW_WATER_OF_BATCH = 0.1;
/** Added to the round trip for the tick in which calls are gathered. */
const TICK_ALLOWANCE_MS: Milliseconds = 3;
/** Largest demand that is reported, so that the sums of a large fleet stay exact: 70 million tokens a second. */
const LARGEST_DEMAND: MicroTokens = 2 ** 46;

/**
 * What is asked of one key at one instance: an exponentially decaying sum of attempts over an equally decaying span,
 * so that the first estimates are as good as the time measured allows.
 *
 * It is measured when the instance calls the store, which is when somebody has just asked: counted as of that moment,
 * each measure would have one attempt too many (50 instances with 10 a second would seem to ask for 600). Attempts are
 * therefore taken as spread over the time since the last measure.
 */
export interface Demand {
  demandSum: MicroTokens;
  demandSpanMs: Milliseconds;
  /** When it was last measured. */
  demandAt: Milliseconds;
  /** What is left in the sum of the request that began it all; negative: there was none yet. */
  demandFirst: MicroTokens;
}

/** Counts what was asked for since the last call of this, denied attempts included. */
export function addDemand(demand: Demand, attempted: MicroTokens, now: Milliseconds): void {
  const elapsed = Math.max(0, now - demand.demandAt);
  const window = Math.min(LONGEST_WINDOW_MS, Math.max(DEMAND_WINDOW_MS, INTERVALS_A_WINDOW * elapsed));
  const decay = Math.exp(-elapsed / window);
  const gained = window * (1 - decay);
  // After a long gap the window is short again: what is remembered keeps its rate, and weighs no more than the window.
  const span = Math.min(demand.demandSpanMs, window);
  const kept = (demand.demandSpanMs > window ? window / demand.demandSpanMs : 1) * decay;
  demand.demandSum = demand.demandSum * kept + (elapsed > 0 ? (attempted * gained) / elapsed : attempted);
  if (demand.demandFirst >= 0) demand.demandFirst *= kept;
  else if (attempted > 0) demand.demandFirst = Math.min(attempted, MICRO);
  demand.demandSpanMs = span * decay + gained;
  demand.demandAt = now;
}

/** Micro-tokens a second, whole. */
export function perSecond(demand: Demand): MicroTokens {
  return rateOf(demand, demand.demandSum);
}

/**
 * The same of what came after the first request, which says nothing of how often others follow: what tokens may be
 * held ready for. Whoever has asked once may never ask again.
 */
export function followedPerSecond(demand: Demand): MicroTokens {
  return rateOf(demand, demand.demandSum - Math.max(0, demand.demandFirst));
}

function rateOf({ demandSpanMs }: Demand, sum: MicroTokens): MicroTokens {
  const rate = (sum / Math.max(demandSpanMs, SHORTEST_MEASURE_MS)) * 1_000;
  return Math.min(Math.max(0, Math.floor(rate)), LARGEST_DEMAND);
}

/** What the last reply said about sharing. */
export interface Share {
  /** The holder's share of the fleet's rate, micro-tokens a second; 0 while demand fits. */
  readonly level: number;
  readonly horizonMs: Milliseconds;
  /** The store can spare more than that. */
  readonly plenty: boolean;
}

/** The batch worth holding for `demand` under `share`; 0 where only needs should be asked for. */
export function batchSize(demand: MicroTokens, share: Share): MicroTokens {
  const batch = (effective(demand, share) * share.horizonMs) / 1_000;
  const chance = share.plenty ? unevenness(batch) : 0;
  return batch >= SMALLEST_BATCH ? Math.ceil((batch + chance) / MICRO) * MICRO : 0;
}

/**
 * What may come on top of so much: callers that know nothing of each other do not come evenly, and three standard
 * deviations more is seldom exceeded.
 */
function unevenness(expected: MicroTokens): MicroTokens {
  return 3 * Math.sqrt(expected * MICRO);
}

/** The balance below which the next batch is fetched; 0 where none is held ready. */
export function lowWaterMark(demand: MicroTokens, share: Share, roundTripMs: Milliseconds): MicroTokens {
  const batch = batchSize(demand, share);
  if (batch === 0) return 0;
  const duringTrip = (demand * (roundTripMs + TICK_ALLOWANCE_MS)) / 1_000;
  // Who is held to a share denies some in any case, and would only come before its turn.
  const uneven = share.level > 0 ? 0 : unevenness(duringTrip);
  return Math.min(batch, Math.max(batch * LOW_WATER_OF_BATCH, duringTrip + uneven));
}

/** What is left over when all have had their shares is used up by somewhat larger batches, in fewer calls. */
function effective(demand: MicroTokens, share: Share): MicroTokens {
  return share.level > 0 ? Math.min(demand, BATCH_OF_SHARE * share.level) : demand;
}
