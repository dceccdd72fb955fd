// Batches gated by the fair level as they were before what is left over was shared by the hungry alone: surplus T is
// divided by all holders, and where batches are too small whoever comes first is served. The prototype's rule.

import { fairLevel } from '../../../src/ceiling/allotment.ts';
import { LONGEST_US, refillTime } from '../../../src/ceiling/exact.ts';

export { demandClass, fairLevel, joinMembers, leaveMembers } from '../../../src/ceiling/allotment.ts';

const MICRO = 1_000_000;
const whole = (amount) => (amount > 0 ? Math.floor(amount / MICRO) * MICRO : 0);

export function allot(bucket, holder, call, now) {
  const rate = (bucket.rateNum / bucket.rateDen) * MICRO;
  const fill = (bucket.burst / bucket.rateNum) * bucket.rateDen;
  const spaced = (bucket.members / 11_000) * MICRO;
  const horizon = Math.max(1, Math.floor(Math.min(Math.max(250_000, spaced), fill / 2.5)));
  const { level, total } = fairLevel(bucket, rate);
  const share = level > 0 ? level * holder.weight : (rate * holder.weight) / total;
  const batch = (share * horizon) / MICRO;
  const few = level > 0 && batch < 1.5 * MICRO;
  holder.memberUntil = now + Math.max(call.lease, Math.min(LONGEST_US, Math.ceil((3 * MICRO * MICRO) / share)));
  if (Number.isNaN(holder.credit)) holder.credit = batch;
  const earned = (share * Math.max(0, now - holder.creditAt)) / MICRO;
  holder.credit = Math.min(Math.max(MICRO, 2 * batch), holder.credit + earned);
  holder.creditAt = now;
  const available = Math.max(0, bucket.level.tokens);
  const ask = call.need + call.want;
  const need = available >= call.head ? Math.min(call.need, available) : 0;
  let granted;
  if (level === 0) granted = Math.max(need, Math.min(ask, whole(available / (bucket.members + 1))));
  else if (few) granted = Math.min(need, Math.max(call.head, MICRO));
  else {
    const surplus = whole((available - 2 * batch) / (bucket.members + 1));
    const entitled = Math.min(ask, available, Math.max(whole(holder.credit), surplus));
    granted = entitled >= call.head ? Math.max(0, entitled) : 0;
  }
  if (level > 0 && !few && granted >= whole(available) && holder.credit > granted) holder.credit = granted;
  holder.credit -= granted;
  const unmet = granted < call.head;
  const short = refillTime(call.head - available, bucket);
  let next = 0;
  if (level > 0 && !few) {
    if (granted < ask) next = Math.max(1, Math.min(LONGEST_US, Math.ceil(((batch - holder.credit) / share) * MICRO)));
    if (granted > 0) next = Math.min(next, horizon);
  } else if (unmet) {
    if (holder.slotAt <= now) {
      const each = refillTime(Math.max(call.head, 1), bucket);
      bucket.slotAt = Math.min(Math.max(bucket.slotAt, now) + each, now + Math.min(LONGEST_US, bucket.members * each));
      holder.slotAt = bucket.slotAt;
    }
    next = holder.slotAt - now;
  }
  if (unmet) next = Math.max(next, short);
  return { granted, level: Math.floor(level), horizon, next, retry: unmet ? next : 0, giveBack: false };
}
