import type { Microseconds, MicroTokens } from '../units.js';
import { MAX_SKEW_US } from './ceiling-store.js';
import { ANSWER_KEPT_US, type PaceCall, type PaceReply, TERMS_KEPT_US } from './pace-store.js';

/** The schedule of one key. Twin of `lua/pace.lua`, statement for statement. */
export interface Schedule {
  version: number;
  rateNum: number;
  rateDen: number;
  queue: MicroTokens;
  /** From when on the next one may go. */
  next: Microseconds;
  /** The last moment seen. */
  at: Microseconds;
  /** By holder: the last call that was answered, and how. */
  readonly answers: Map<string, Answer>;
}

interface Answer {
  readonly seq: number;
  readonly at: Microseconds;
  readonly slots: readonly Microseconds[];
}

/** A schedule nobody has asked yet, under the terms of its first call. */
export function newSchedule({ version, rateNum, rateDen, queue }: PaceCall, now: Microseconds): Schedule {
  return { version, rateNum, rateDen, queue, next: now, at: now, answers: new Map() };
}

/** Reserves slots for the callers of one call, in their order, as far as the queue has room. */
export function reserveSlots(schedule: Schedule, call: PaceCall, now: Microseconds): PaceReply {
  // A clock that was set back takes the queue with it, which would else be as much longer.
  if (schedule.at - now > MAX_SKEW_US) schedule.next -= schedule.at - now;
  schedule.at = Math.max(schedule.at - now > MAX_SKEW_US ? now : schedule.at, now);
  meetTerms(schedule, call);
  for (const [id, { at }] of schedule.answers) if (at + ANSWER_KEPT_US <= now) schedule.answers.delete(id);

  const last = schedule.answers.get(call.holder);
  const { version } = schedule;
  if (last && call.seq < last.seq) return reply(schedule, call.seq, 'stale', [], version, now);
  if (last && call.seq === last.seq) return reply(schedule, call.seq, 'reserved', last.slots, version, now);
  const longest = spacing(schedule, schedule.queue);
  const slots: Microseconds[] = [];
  for (const cost of call.costs) {
    const slot = Math.max(now, schedule.next);
    if (slot - now > longest) break;
    slots.push(slot);
    schedule.next = slot + spacing(schedule, cost);
  }
  schedule.answers.set(call.holder, { seq: call.seq, at: now, slots });
  return reply(schedule, call.seq, 'reserved', slots, version, now);
}

/** From when on nothing of a schedule need be known any more. */
export function scheduleEnd({ next, at }: Schedule): Microseconds {
  return Math.max(next, at) + TERMS_KEPT_US;
}

function meetTerms(schedule: Schedule, call: PaceCall): void {
  if (call.version < schedule.version) return;
  const newer = call.version > schedule.version;
  if (newer || call.rateNum / call.rateDen < schedule.rateNum / schedule.rateDen) {
    schedule.rateNum = call.rateNum;
    schedule.rateDen = call.rateDen;
  }
  if (newer || call.queue < schedule.queue) schedule.queue = call.queue;
  schedule.version = call.version;
}

function spacing({ rateNum, rateDen }: Schedule, cost: MicroTokens): Microseconds {
  return Math.ceil((cost / rateNum) * rateDen);
}

function reply(
  { next }: Schedule,
  seq: number,
  status: PaceReply['status'],
  slots: readonly Microseconds[],
  version: number,
  now: Microseconds,
): PaceReply {
  return { seq, status, now, slots, behind: Math.max(0, next - now), version };
}
