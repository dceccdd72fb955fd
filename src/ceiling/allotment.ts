import { MICRO, MICROS_PER_MS, type Microseconds, type MicroTokens } from '../units.js';
import type { Bucket, Holder } from './bucket.js';
import { type LeaseCall, leaseGrace } from './ceiling-store.js';
import { LONGEST_US, refillTime } from './exact.js';
import { heldReady } from './guard.js';
import type { Moment, RefillRule } from './refill/refill-rule.js';

/**
 * Who gets how much: batches gated by the fair level (`docs/design.md`, "Who gets how much").
 *
 * The fair level λ is the water level of weighted max-min sharing: Σ min(demand, weight·λ) = R. While demand fits, a
 * holder gets what it needs and a batch for its own demand. When it does not, each holder earns entitlement at
 * weight·λ and is granted up to it, and what is left over in the bucket is shared by those who ask for more. Where λ is
 * less than a token a batch, only needs are granted, to those whose turn it is, and denied holders get slots at the
 * refill rate. A need too large to be earned soon is saved for, and paid back. `docs/shares.md` tells it with examples.
 * Nothing here can break the ceiling: it only chooses a grant between 0 and T.
 */
export interface Allotment {
  granted: MicroTokens;
  level: number;
  horizon: Microseconds;
  next: Microseconds;
  retry: Microseconds;
  giveBack: boolean;
}

/** The longest span of demand one batch is sized for, unless the fleet is so large that its calls must be spaced. */
const HORIZON_US: Microseconds = 300 * MICROS_PER_MS;
/** A fleet's calls about one bucket are spaced so that it makes at most this many a second. */
const CALLS_PER_SECOND = 11_000;
/** And the longest where there is room for it: a caller cuts it to what its lease allows. */
const LONGEST_HORIZON_US: Microseconds = 60_000 * MICROS_PER_MS;
/** Below this part of the rate, demand leaves room; between it and the rate, it may soon be more than there is. */
const ROOMY_BELOW = 0.8;
/** Of the time to fill the bucket, how much a batch may span: what is outstanding counts against the burst. */
const HORIZON_OF_FILL = 2;
/** Below this many tokens, or calls' worth, a batch would strand the last tokens: only needs are granted, in turn. */
const FEW_TOKENS = 1.5 * MICRO;
const FEW_NEEDS = 1.5;
/** Where batches are too small: how much of the bucket must be full (a fifth) to let in whoever is not in debt. */
const FILL_OPENS = 5;
/** Where the bucket takes longer than this to fill, tokens are not kept for a turn that may never be claimed. */
const LONGEST_KEPT_US: Microseconds = 60_000 * MICROS_PER_MS;
/** How many of its own turns a member may miss before fairness forgets it. */
const TURNS_REMEMBERED = 3;
/** The floor: however little it weighs, a holder's share is a tenth of an equal one. */
const FLOOR_PARTS = 10;
/** How much longer than all of the refill would take a large need is saved for: the others get the rest of it. */
const SAVING_TIME = 1.4;

/**
 * Chooses the grant for `holder`, whose demand is already counted in `bucket`; T is brought up to the moment.
 *
 * @param mayGrant whether there is time left to spend a grant in
 */
export function allot(
  bucket: Bucket,
  holder: Holder,
  rule: RefillRule,
  call: LeaseCall,
  mayGrant: boolean,
  moment: Moment,
): Allotment {
  const { now } = moment;
  const rate = (bucket.rateNum / bucket.rateDen) * MICRO;
  const horizon = horizonOf(bucket);
  const { level, total, hungry, demand } = fairLevel(bucket, rate);
  const part = level > 0 ? level * holder.weight : (rate * holder.weight) / total;
  const share = Math.max(part, rate / (FLOOR_PARTS * bucket.members));
  const batch = (share * horizon) / MICRO;
  const few = level > 0 && batch < Math.max(FEW_TOKENS, FEW_NEEDS * call.head);
  holder.memberUntil = Math.max(
    now + call.lease + leaseGrace(call.lease),
    now + Math.min(LONGEST_US, Math.ceil((TURNS_REMEMBERED * MICRO * MICRO) / share)),
  );
  earn(holder, share, batch, call.head, now);
  const lent = bucket.reservedFor === call.holder;
  // With nobody to share with there is nothing to be fair about: what is there is had, and waited for no longer than needed.
  const alone = bucket.members === 1;

  const available = mayGrant ? availableTo(bucket, call, now) : 0;
  const ask = call.need + call.want;
  // A need that can't be met at all is not met in part: the rest would lie in a wallet while it waits.
  const enough = available >= call.head;
  const need = enough ? Math.min(call.need, available) : 0;
  // A bucket that is full loses what is refilled: then nobody has to be held to a share.
  const fill = available / Math.max(1, bucket.burst - bucket.outstanding);
  const free = alone || fill >= 1;
  let granted: MicroTokens;
  if (level === 0) {
    granted = enough ? Math.max(need, Math.min(ask, whole(available / (bucket.members + 1)))) : 0;
  } else if (few) {
    // In turn: first who is owed a token, and the fuller the bucket the sooner one who has just had one.
    const kept = !rule.atOnce && refillTime(bucket.burst, bucket) <= LONGEST_KEPT_US;
    const least = Math.max(call.head, MICRO);
    // Nobody who was denied waits for a turn: then there is nothing to be kept.
    const unclaimed = bucket.slotAt <= now;
    const turn = !kept || unclaimed || holder.credit >= least * (1 - FILL_OPENS * fill);
    // Where each of the others would still find a token, callers are not served one a call.
    const plenty = available >= call.need + MICRO * (bucket.members - 1);
    if (plenty) granted = need;
    else granted = turn || free || lent ? Math.min(need, least) : 0;
  } else {
    // What the holders below the level may take soon stays; the rest is for the hungry, of whom about half ask in time.
    const reserve = batch + ((rate - level * hungry) * horizon) / (4 * MICRO);
    const surplus = whole(((available - reserve) * holder.weight) / (hungry / 2 + holder.weight));
    // One that is alone has all it asks for: kept from it, what is left would serve nobody before it may ask again.
    const whollyIts = alone && !call.window;
    const freely = whollyIts ? ask : free ? need : 0;
    const entitled = Math.min(
      ask,
      whollyIts ? Math.max(need, whole(available)) : available,
      Math.max(whole(holder.credit), surplus, freely, lent ? call.head : 0),
    );
    granted = entitled >= call.head ? Math.max(0, entitled) : 0;
  }
  if (bucket.reservedFor !== '' && bucket.reservedFor !== call.holder) granted = Math.min(granted, need);
  // Under the strict rule, what nobody waits for stays within its part of the burst.
  if (moment.until > 0 && !call.window)
    granted = Math.min(granted, Math.max(need, whole(heldReady(bucket.burst) - bucket.outstanding)));
  // Entitlement that T could not back is forfeited: else everybody stays at its cap over an empty bucket.
  if (level > 0 && !few && granted >= whole(available) && holder.credit > granted) holder.credit = granted;
  holder.credit -= granted;
  // While demand fits nobody owes anybody.
  if ((alone || level === 0) && holder.credit < 0) holder.credit = 0;

  const unmet = granted < call.head;
  if (unmet && !rule.atOnce) reserve(bucket, holder, call, share, now);
  else if (bucket.reservedFor === call.holder) bucket.reservedFor = '';
  const short = unmet ? rule.wait(bucket, call.head, moment) : 0;
  let next: Microseconds = 0;
  if (level > 0 && !few) {
    const worth = unmet && !alone ? Math.max(batch, call.head) : batch;
    if (granted < ask) next = Math.max(1, Math.min(LONGEST_US, Math.ceil(((worth - holder.credit) / share) * MICRO)));
    if (granted > 0) next = Math.min(next, horizon);
  } else if (unmet && !alone && !rule.atOnce) {
    next = slot(bucket, holder, call, now) - now;
  }
  if (unmet && bucket.reservedFor === call.holder) next = Math.floor(horizon / 8);
  if (unmet) next = Math.max(next, short);
  return {
    granted,
    level: Math.min(Math.floor(level), Number.MAX_SAFE_INTEGER),
    // In a sliding window a spend comes back a window after it was reported: the sooner that is, the better.
    horizon: call.window ? horizon : roomyHorizon(horizon, rate, demand),
    next,
    retry: unmet ? (alone ? short : next) : 0,
    giveBack: bucket.reservedFor !== '' && bucket.reservedFor !== call.holder,
  };
}

/** Counts a holder's demand in its class. */
export function joinMembers(bucket: Bucket, holder: Holder): void {
  const index = demandClass(holder.demand / holder.weight);
  const sums = bucket.classes.get(index);
  if (sums) {
    sums.demand += holder.demand;
    sums.weight += holder.weight;
  } else {
    bucket.classes.set(index, { demand: holder.demand, weight: holder.weight });
  }
  bucket.members += 1;
}

/** Takes a holder's demand out of its class. */
export function leaveMembers(bucket: Bucket, holder: Holder): void {
  const index = demandClass(holder.demand / holder.weight);
  const sums = bucket.classes.get(index);
  if (sums) {
    sums.demand -= holder.demand;
    sums.weight -= holder.weight;
    if (sums.weight <= 0) bucket.classes.delete(index);
  }
  bucket.members -= 1;
}

/** What max-min sharing of a rate comes to, in micro-tokens a second. */
export interface FairLevel {
  /** A unit of weight gets at most this; 0 where all demands fit. */
  readonly level: number;
  /** Weight of all members, and of those who ask for more than the level gives them. */
  readonly total: number;
  readonly hungry: number;
  /** What all members ask for, in micro-tokens a second. */
  readonly demand: number;
}

/**
 * The level at which the demands of all members use up `rate`. Exact but for the one class that it falls into, whose
 * members are taken to ask for the same.
 */
export function fairLevel(bucket: Pick<Bucket, 'classes'>, rate: number): FairLevel {
  let left = rate;
  let weight = 0;
  let demand = 0;
  for (const sums of bucket.classes.values()) {
    weight += sums.weight;
    demand += sums.demand;
  }
  const total = weight;
  if (demand <= rate) return { level: 0, total, hungry: 0, demand };
  for (const index of [...bucket.classes.keys()].sort((a, b) => a - b)) {
    const sums = bucket.classes.get(index);
    if (!sums) continue;
    if ((sums.demand / sums.weight) * weight > left) break;
    left -= sums.demand;
    weight -= sums.weight;
  }
  return { level: left / weight, total, hungry: weight, demand };
}

/** The class of a demand a unit of weight: four to the doubling, 0 for less than one micro-token a second. */
export function demandClass(demand: number): number {
  if (demand < 1) return 0;
  let index = 1;
  let rest = demand;
  while (rest >= 65_536) {
    rest /= 65_536;
    index += 64;
  }
  while (rest >= 2) {
    rest /= 2;
    index += 4;
  }
  // The quarters of a doubling: powers of the fourth root of two.
  if (rest >= 1.681792830507429) return index + 3;
  if (rest >= Math.SQRT2) return index + 2;
  if (rest >= 1.189207115002721) return index + 1;
  return index;
}

function horizonOf(bucket: Bucket): Microseconds {
  const spaced = (bucket.members / CALLS_PER_SECOND) * MICRO;
  const fill = (bucket.burst / bucket.rateNum) * bucket.rateDen;
  return Math.max(1, Math.floor(Math.min(Math.max(HORIZON_US, spaced), fill / HORIZON_OF_FILL)));
}

/** What is held ready may be as much as if most of the rate were asked for: the less is, the longer it lasts. */
function roomyHorizon(horizon: Microseconds, rate: number, demand: number): Microseconds {
  const room = Math.max(1, (ROOMY_BELOW * rate) / Math.max(1, demand));
  return Math.max(horizon, Math.floor(Math.min(LONGEST_HORIZON_US, horizon * room)));
}

/** Lets entitlement grow at the holder's share, up to two batches, and never less than a token or what it waits for. */
function earn(holder: Holder, share: number, batch: MicroTokens, head: MicroTokens, now: Microseconds): void {
  if (Number.isNaN(holder.credit)) holder.credit = batch;
  const elapsed = Math.max(0, now - holder.creditAt);
  holder.credit = Math.min(Math.max(MICRO, 2 * batch, head), holder.credit + (share * elapsed) / MICRO);
  holder.creditAt = now;
}

/** T, less what is being saved for another holder's large need: more and more of it, so that the others go on. */
function availableTo(bucket: Bucket, call: LeaseCall, now: Microseconds): MicroTokens {
  if (bucket.reservedFor !== '' && bucket.reservedUntil <= now) bucket.reservedFor = '';
  if (bucket.reservedFor === '' || bucket.reservedFor === call.holder) return Math.max(0, bucket.level.tokens);
  const since = now - (bucket.reservedUntil - 2 * refillTime(bucket.burst, bucket));
  const saved = Math.floor(((since / bucket.rateDen) * bucket.rateNum) / SAVING_TIME);
  return Math.max(0, bucket.level.tokens - Math.min(bucket.reserved, saved));
}

/**
 * Starts saving for a need that neither the others leave nor its holder's share earns in the time to fill the bucket.
 * It is lent, and paid back out of the holder's share: one that is still paying has to earn its needs.
 */
function reserve(bucket: Bucket, holder: Holder, call: LeaseCall, share: number, now: Microseconds): void {
  if (bucket.reservedFor === call.holder) bucket.reserved = call.head;
  if (bucket.reservedFor !== '' || holder.credit < 0 || call.head <= FEW_TOKENS) return;
  const fill = refillTime(bucket.burst, bucket);
  const slow = ((call.head - holder.credit) / share) * MICRO > fill && 4 * call.head > bucket.burst;
  if (!slow && call.head <= bucket.burst - bucket.outstanding) return;
  bucket.reservedFor = call.holder;
  bucket.reserved = call.head;
  bucket.reservedUntil = now + 2 * fill;
}

/** The moment at which it is this holder's turn; asking again before it gives the same answer. */
function slot(bucket: Bucket, holder: Holder, call: LeaseCall, now: Microseconds): Microseconds {
  if (holder.slotAt > now) return holder.slotAt;
  const each = refillTime(Math.max(call.head, 1), bucket);
  bucket.slotAt = Math.min(Math.max(bucket.slotAt, now) + each, now + Math.min(LONGEST_US, bucket.members * each));
  holder.slotAt = bucket.slotAt;
  return holder.slotAt;
}

function whole(amount: MicroTokens): MicroTokens {
  return amount > 0 ? Math.floor(amount / MICRO) * MICRO : 0;
}
