// Leased refill rates: each holder has a sub-bucket that fills at its max-min share and holds two batches; what runs over
// is gone, as it would be where the holder refills by itself.

import { fairLevel } from '../../../src/ceiling/allotment.ts';
import { LONGEST_US, refillTime } from '../../../src/ceiling/exact.ts';

export { demandClass, fairLevel, joinMembers, leaveMembers } from '../../../src/ceiling/allotment.ts';

const MICRO = 1_000_000;

export function allot(bucket, holder, call, now) {
  const rate = (bucket.rateNum / bucket.rateDen) * MICRO;
  const fill = (bucket.burst / bucket.rateNum) * bucket.rateDen;
  const horizon = Math.max(1, Math.floor(Math.min(250_000, fill / 2.5)));
  const { level, total } = fairLevel(bucket, rate);
  const share = level > 0 ? Math.min(holder.demand, level * holder.weight) : (rate * holder.weight) / total;
  const batch = (share * horizon) / MICRO;
  holder.memberUntil =
    now + Math.max(call.lease, Math.min(LONGEST_US, Math.ceil((3 * MICRO * MICRO) / Math.max(1, share))));
  if (Number.isNaN(holder.credit)) holder.credit = batch;
  const earned = (share * Math.max(0, now - holder.creditAt)) / MICRO;
  holder.credit = Math.min(Math.max(MICRO, 2 * batch, call.head), holder.credit + earned);
  holder.creditAt = now;
  const ask = call.need + call.want;
  const available = Math.max(0, bucket.level.tokens);
  const had = Math.min(ask, available, Math.max(0, Math.floor(holder.credit / MICRO) * MICRO));
  const granted = had >= call.head ? had : 0;
  holder.credit -= granted;
  const unmet = granted < call.head;
  let next = 0;
  if (granted < ask)
    next = Math.max(1, Math.min(LONGEST_US, Math.ceil(((batch - holder.credit) / Math.max(1, share)) * MICRO)));
  if (granted > 0) next = Math.min(next, horizon);
  if (unmet) next = Math.max(next, refillTime(call.head - available, bucket), 1_000);
  return { granted, level: Math.floor(level), horizon, next, retry: unmet ? next : 0, giveBack: false };
}
