import type { Microseconds, MicroTokens } from '../units.js';
import { type Allotment, allot, joinMembers, leaveMembers } from './allotment.js';
import type { Bucket, Holder } from './bucket.js';
import {
  type LeaseCall,
  type LeaseReply,
  leaseGrace,
  MAX_AGE_US,
  MAX_SKEW_US,
  type ReplyHead,
} from './ceiling-store.js';
import { type Fence, meetFence, newFence, sameTerms } from './fence.js';
import { guardedUntil } from './guard.js';
import { lacksWindow } from './refill/fixed-window.js';
import type { Moment, RefillRule } from './refill/refill-rule.js';
import { ruleOf } from './refill/rules.js';

/**
 * The escrow ledger of one partition: the executable model of `lua/lease.lua`, statement for statement.
 *
 * A bucket holds T tokens, and O tokens are outstanding: granted and, as far as the store knows, not yet spent. The
 * invariant T + O ≤ B is kept by every line below; why it bounds every window by B + R·w is in `docs/design.md`.
 */
export interface Partition {
  /** Identity of the store's data; another one after it was lost or is suspected to be stale. */
  era: string;
  bornAt: Microseconds;
  fences: Map<string, Fence>;
  buckets: Map<string, Bucket>;
}

/** What one execution is given besides the call: its clock reading, and identities for what it may have to make. */
export interface Execution {
  readonly now: Microseconds;
  /** Used as the era where there is none yet. */
  readonly newEra: string;
  /** A store without data had none before (tests, a first demo): its buckets start full, not empty. */
  readonly newStore: 'empty' | 'full';
}

/** How much longer than strictly needed a bucket is kept, so that its expiry need not be written at each call. */
const KEEP_LONGER_US: Microseconds = 1_000_000;

/** Up to this many holders each lease is ended as it falls due; beyond it, all that are due together, now and then. */
const FEW_HOLDERS = 128;
const SWEEP_PAUSE_US: Microseconds = 20_000;

/** A partition that nobody has called yet. */
export function newPartition(execution: Execution): Partition {
  // Where nothing was there before, nothing has been lost: such data is as old as can be.
  const bornAt = execution.newStore === 'full' ? 0 : execution.now;
  return { era: execution.newEra, bornAt, fences: new Map(), buckets: new Map() };
}

/** Executes one call: reports, takes back, returns and grants, or says why not. Atomic; everything in `partition`. */
export function execute(partition: Partition, call: LeaseCall, execution: Execution): LeaseReply {
  const { now } = execution;
  let fence = partition.fences.get(call.fence);
  let conflict = false;
  if (fence) {
    conflict = meetFence(fence, call, partition.bornAt, now).conflict;
  } else {
    fence = newFence(call, partition.bornAt, now, execution.newStore === 'full');
    partition.fences.set(call.fence, fence);
  }
  const head = {
    seq: call.seq,
    now,
    era: partition.era,
    version: fence.version,
    burst: fence.burst,
    rateNum: fence.rateNum,
    rateDen: fence.rateDen,
  };
  if (believes(call) && (now - call.sentAt > MAX_AGE_US || call.sentAt - now > MAX_SKEW_US)) {
    return { ...head, status: 'refused' };
  }

  const name = bucketName(call);
  let bucket = partition.buckets.get(name);
  if (bucket && bucket.expiresAt <= now) {
    partition.buckets.delete(name);
    bucket = undefined;
  }
  const known = bucket?.holders.get(call.holder);
  if (bucket && known) {
    // Answered without a change: a repeat from its record, an older one not at all (rules 2 and 10).
    if (call.seq < known.seq) return { ...head, status: 'stale' };
    if (call.seq === known.seq) return grantReply(head, known, bucket, call);
    // Sent under a lease that has ended here since: what it holds and gives back has been counted as spent (rule 6).
    const holds = call.unspent > 0 || call.returned > 0;
    if (holds && known.leaseEnd <= now && call.sentAt < known.leaseEnd) return { ...head, status: 'refused' };
  }

  if (lacksWindow(bucket, call, now)) return { ...head, status: 'refused' };
  const rule = ruleOf(call);
  const moment: Moment = { now, bornAt: partition.bornAt, until: guardedUntil(fence.guard, partition.bornAt) };
  if (bucket) advance(bucket, rule, call, fence, partition, moment);
  else {
    bucket = newBucket(fence, partition, now);
    rule.begin(bucket, call, fence, moment);
    partition.buckets.set(name, bucket);
  }
  const holder = report(bucket, call, partition, now);
  chargeOutage(bucket, call, now);
  rule.settle(bucket, call, moment);

  const lease = rule.leaseWithin(bucket, call.lease, now, bucket.window.end);
  const longest = lease < call.lease ? bucket.window.end : now + lease + leaseGrace(lease);
  const end = rule.atOnce ? Math.min(longest, bucket.window.end) : longest;
  holder.leaseEnd = holder.outstanding > 0 ? Math.max(holder.leaseEnd, end) : end;
  const allotment = allot(bucket, holder, rule, call, lease > 0, moment);
  grant(bucket, holder, call, allotment, conflict);
  keep(bucket, holder, rule, call, moment);
  return grantReply(head, holder, bucket, call);
}

/** Marks the partition's data as possibly stale (another server answers for it): a new era that begins now. */
export function suspect(partition: Partition, newEra: string, now: Microseconds): void {
  partition.era = newEra;
  partition.bornAt = now;
  for (const fence of partition.fences.values()) {
    fence.untouched.tokens = Math.min(fence.untouched.tokens, 0);
    fence.untouched.remainder = 0;
    fence.untouched.at = now;
  }
}

/** Whether a call carries anything that does harm when it comes late (rule 7). */
function believes(call: LeaseCall): boolean {
  const givesBack = call.returned > 0 || call.refund > 0 || call.disown > 0;
  return call.unspent > 0 || givesBack || call.witness > 0 || call.since > 0;
}

/** Under which name a partition keeps a bucket; no policy's name has a colon. */
export function bucketName(call: Pick<LeaseCall, 'policy' | 'key'>): string {
  return `${call.policy}:${call.key}`;
}

function newBucket(fence: Fence, partition: Partition, now: Microseconds): Bucket {
  return {
    version: fence.version,
    burst: fence.burst,
    rateNum: fence.rateNum,
    rateDen: fence.rateDen,
    length: fence.length,
    era: partition.era,
    incarnation: now,
    level: { tokens: 0, remainder: 0, at: now },
    window: { start: 0, end: 0, current: 0, previous: 0, times: [], amounts: [], lastFrom: 0 },
    clearedAt: 0,
    outstanding: 0,
    spent: 0,
    refund: 0,
    holders: new Map(),
    lastEnd: 0,
    longestLease: 0,
    sweepAt: Number.MAX_SAFE_INTEGER,
    expiresAt: 0,
    paidUntil: 0,
    classes: new Map(),
    members: 0,
    slotAt: 0,
    reservedFor: '',
    reserved: 0,
    reservedUntil: 0,
  };
}

/** Brings a bucket up to `now`: suspicion, clock steps, refill with the old O, and only then lease ends (rule 8). */
function advance(
  bucket: Bucket,
  rule: RefillRule,
  call: LeaseCall,
  fence: Fence,
  partition: Partition,
  moment: Moment,
): void {
  const { now } = moment;
  bucket.spent = 0;
  bucket.refund = 0;
  if (bucket.era !== partition.era) {
    rule.suspect(bucket, moment);
    bucket.era = partition.era;
  }
  if (bucket.level.at - now > MAX_SKEW_US) rebase(bucket, rule, call, now);
  rule.refill(bucket, call, moment);
  sweep(bucket, now);
  // An override that has come or gone has a fence of another name: a caller that has not heard of it changes nothing.
  const current = fence.version === bucket.version && call.version === fence.version;
  if (fence.version > bucket.version || (current && !sameTerms(bucket, fence))) {
    rule.adopt(bucket, fence, now);
    bucket.version = fence.version;
    bucket.burst = fence.burst;
    bucket.rateNum = fence.rateNum;
    bucket.rateDen = fence.rateDen;
    bucket.length = fence.length;
  }
}

/** The store's clock stepped back further than allowed: start over from `now`, and let no lease outlive the step. */
function rebase(bucket: Bucket, rule: RefillRule, call: LeaseCall, now: Microseconds): void {
  rule.rebase(bucket, call, now);
  const longest = now + bucket.longestLease + leaseGrace(bucket.longestLease);
  const latest = rule.atOnce ? Math.min(longest, bucket.window.end) : longest;
  for (const holder of bucket.holders.values()) {
    holder.leaseEnd = Math.min(holder.leaseEnd, latest);
    holder.memberUntil = Math.min(holder.memberUntil, latest);
    holder.creditAt = Math.min(holder.creditAt, now);
    holder.slotAt = Math.min(holder.slotAt, now);
  }
  bucket.lastEnd = Math.min(bucket.lastEnd, latest);
  bucket.slotAt = Math.min(bucket.slotAt, now);
  bucket.paidUntil = Math.min(bucket.paidUntil, now);
  bucket.reservedUntil = Math.min(bucket.reservedUntil, now);
  bucket.sweepAt = now;
}

/** Ends leases that are over (counted as spent, never credited) and drops records nothing can refer to any more. */
function sweep(bucket: Bucket, now: Microseconds): void {
  if (now < bucket.sweepAt) return;
  let next = Number.MAX_SAFE_INTEGER;
  for (const [id, holder] of bucket.holders) {
    if (holder.outstanding > 0 && holder.leaseEnd <= now) {
      if (holder.leaseEnd > bucket.clearedAt) {
        bucket.outstanding -= holder.outstanding;
        bucket.spent += holder.outstanding;
      }
      holder.outstanding = 0;
      holder.lastGrant = 0;
    }
    const recordEnd = Math.max(holder.leaseEnd + MAX_AGE_US, holder.memberUntil);
    if (holder.outstanding === 0 && recordEnd <= now) {
      leaveMembers(bucket, holder);
      bucket.holders.delete(id);
    } else {
      next = Math.min(next, holder.outstanding > 0 ? holder.leaseEnd : recordEnd);
    }
  }
  // Among many, some lease ends at every moment; one that is ended a little late is only tokens that wait.
  bucket.sweepAt = bucket.members > FEW_HOLDERS ? Math.max(next, now + SWEEP_PAUSE_US) : next;
}

/** Takes in what the holder says of itself, and answers its record, made where there is none. */
function report(bucket: Bucket, call: LeaseCall, partition: Partition, now: Microseconds): Holder {
  const { level } = bucket;
  let holder = bucket.holders.get(call.holder);
  if (holder) {
    if (holder.leaseEnd <= bucket.clearedAt) {
      holder.outstanding = 0;
      holder.lastGrant = 0;
    }
    if (call.disown > 0 && holder.seq >= call.disown) {
      const undone = Math.min(holder.lastGrant, holder.outstanding);
      bucket.outstanding -= undone;
      holder.outstanding -= undone;
      level.tokens += undone;
      holder.credit += undone;
    }
    const credited = Math.min(call.returned, Math.max(0, holder.outstanding - call.unspent));
    level.tokens += credited;
    holder.credit += credited + call.refund;
    bucket.refund = call.refund;
    const spent = holder.outstanding - credited - call.unspent;
    bucket.outstanding += call.unspent - holder.outstanding;
    holder.outstanding = call.unspent;
    if (spent > 0) bucket.spent += spent;
    leaveMembers(bucket, holder);
  } else {
    // `returned` is ignored: where the record is gone the tokens have been counted as spent (rule 7). So is `refund`: where
    // it is gone, nobody knows whether this very call has been executed before.
    holder = newHolder(call, now);
    bucket.outstanding += call.unspent;
    bucket.holders.set(call.holder, holder);
    const lost = call.incarnation !== bucket.incarnation && call.certainUntil > bucket.incarnation;
    // Where all data was lost the untouched bucket began empty, which accounts for whatever was taken before.
    if (call.witness > 0 && lost && call.incarnation >= partition.bornAt) {
      // The key was deleted or evicted while it was certain to exist; what this holder took is missing here.
      charge(bucket, Math.max(-bucket.burst, level.tokens - call.witness));
    }
  }
  holder.seq = call.seq;
  holder.demand = call.demand;
  holder.weight = call.weight;
  joinMembers(bucket, holder);
  return holder;
}

/** Takes T down to `tokens`, as if what is missing had been spent. */
function charge(bucket: Bucket, tokens: MicroTokens): void {
  const spent = bucket.level.tokens - tokens;
  if (spent <= 0) return;
  bucket.level.tokens = tokens;
  bucket.spent += spent;
}

function newHolder(call: LeaseCall, now: Microseconds): Holder {
  return {
    outstanding: call.unspent,
    seq: 0,
    lastGrant: 0,
    leaseEnd: 0,
    memberUntil: 0,
    demand: 0,
    weight: 1,
    credit: Number.NaN,
    creditAt: now,
    slotAt: 0,
    reply: { granted: 0, level: 0, horizon: 0, next: 0, retry: 0, giveBack: false, conflict: false },
  };
}

/** The first to come back from an outage in share mode pays for the whole fleet, once for each moment of it. */
function chargeOutage(bucket: Bucket, call: LeaseCall, now: Microseconds): void {
  if (call.since <= 0) return;
  const from = Math.max(call.since, bucket.paidUntil);
  if (now > from) {
    const spent = Math.ceil(((now - from) / bucket.rateDen) * bucket.rateNum);
    charge(bucket, Math.max(Math.min(bucket.level.tokens, 0), bucket.level.tokens - spent));
  }
  bucket.paidUntil = Math.max(bucket.paidUntil, now);
}

function grant(bucket: Bucket, holder: Holder, call: LeaseCall, allotment: Allotment, conflict: boolean): void {
  const { granted } = allotment;
  bucket.level.tokens -= granted;
  bucket.outstanding += granted;
  holder.outstanding += granted;
  holder.lastGrant = granted;
  holder.reply = { ...allotment, conflict };
  bucket.longestLease = Math.max(bucket.longestLease, call.lease);
}

/** Keeps what the bucket's and the record's lifetimes depend on (rules 7 and 11). */
function keep(bucket: Bucket, holder: Holder, rule: RefillRule, call: LeaseCall, moment: Moment): void {
  bucket.lastEnd = Math.max(bucket.lastEnd, holder.leaseEnd);
  const recordEnd = Math.max(holder.leaseEnd + MAX_AGE_US, holder.memberUntil);
  bucket.sweepAt = Math.min(bucket.sweepAt, holder.outstanding > 0 ? holder.leaseEnd : recordEnd);
  const needed = Math.max(
    rule.fullAt(bucket, moment),
    bucket.lastEnd + MAX_AGE_US,
    call.since > 0 ? bucket.paidUntil : 0,
  );
  if (needed > bucket.expiresAt) bucket.expiresAt = needed + KEEP_LONGER_US;
}

function grantReply(head: ReplyHead, holder: Holder, bucket: Bucket, call: LeaseCall): LeaseReply {
  const { reply } = holder;
  const terms = bucket.version > head.version ? bucket : head;
  // The same for a repeat: from when the call was executed, and when its lease ends here.
  const lease = ruleOf(call).leaseWithin(bucket, call.lease, holder.creditAt, holder.leaseEnd);
  // Field by field: spreading them costs ten times as much, on each call of a simulated fleet.
  return {
    status: 'granted',
    seq: head.seq,
    now: head.now,
    era: head.era,
    version: terms.version,
    burst: terms.burst,
    rateNum: terms.rateNum,
    rateDen: terms.rateDen,
    granted: reply.granted,
    lease: lease < call.lease ? Math.max(1, lease) : 0,
    level: reply.level,
    horizon: reply.horizon,
    next: reply.next,
    retry: reply.retry,
    giveBack: reply.giveBack,
    conflict: reply.conflict,
    incarnation: bucket.incarnation,
    certainUntil: bucket.expiresAt,
  };
}
