// First come first served: whoever asks gets what it asks for, up to T ÷ (holders + 1), and may ask again at once.
import { LONGEST_US, refillTime } from '../../../src/ceiling/exact.ts';

export { demandClass, fairLevel, joinMembers, leaveMembers } from '../../../src/ceiling/allotment.ts';

const MICRO = 1_000_000;

export function allot(bucket, holder, call, now) {
  const fill = (bucket.burst / bucket.rateNum) * bucket.rateDen;
  const horizon = Math.max(1, Math.floor(Math.min(250_000, fill / 2.5)));
  holder.memberUntil = now + call.lease;
  const available = Math.max(0, bucket.level.tokens);
  const part = Math.floor(available / (bucket.members + 1) / MICRO) * MICRO;
  const enough = available >= call.head;
  const granted = enough ? Math.max(Math.min(call.need, available), Math.min(call.need + call.want, part)) : 0;
  const next = granted < call.head ? Math.min(LONGEST_US, refillTime(call.head - available, bucket)) : 0;
  return { granted, level: 0, horizon, next, retry: next, giveBack: false };
}
