import type { Microseconds } from '../units.js';
import { FOREVER, MARK_KEPT_US, MARKS_A_PAGE, type Mark, type MarkCall, type MarkFeed } from './mark-store.js';

/** All marks of a fleet. Twin of `lua/marks.lua`, statement for statement. */
export interface MarkTable {
  era: string;
  /** The counter when the era began. */
  born: number;
  seq: number;
  /** The highest number whose record is gone: whoever has not heard of it can't be told any more. */
  floor: number;
  /** In the order of their numbers. */
  readonly records: Map<string, MarkRecord>;
}

interface MarkRecord {
  readonly policy: string;
  readonly key: string;
  seq: number;
  /** End of the block; 0: it has been lifted. */
  until: Microseconds;
  /** When the last block ended, or will. */
  over: Microseconds;
  step: number;
  forgetAfter: Microseconds;
  reset: number;
  /** When nothing rests on it any more. */
  goesAt: Microseconds;
}

export function newMarkTable(era: string): MarkTable {
  return { era, born: 0, seq: 0, floor: 0, records: new Map() };
}

/** The data may be older than what has been told: readers begin anew. */
export function beginEra(table: MarkTable, era: string): void {
  table.era = era;
  table.born = table.seq;
}

/** Drops records on which nothing rests any more. */
export function purgeMarks(table: MarkTable, now: Microseconds): void {
  for (const [name, { goesAt, seq }] of table.records) {
    if (goesAt > now) continue;
    table.records.delete(name);
    table.floor = Math.max(table.floor, seq);
  }
}

/** Executes one call at `now`. */
export function setMark(table: MarkTable, call: MarkCall, now: Microseconds): Mark {
  const { policy, key } = call;
  const name = `${policy}:${key}`;
  const record = table.records.get(name) ?? {
    policy,
    key,
    seq: 0,
    until: 0,
    over: 0,
    step: 0,
    forgetAfter: 0,
    reset: 0,
    goesAt: 0,
  };
  const blocked = record.until > now;
  if (!blocked && record.over + record.forgetAfter <= now) record.step = 0;
  if (call.kind === 'block') block(record, call.steps, call.forgetAfter, blocked, now);
  else {
    record.until = 0;
    record.over = Math.min(record.over, now);
  }
  if (call.kind === 'reset') record.step = 0;
  table.seq += 1;
  record.seq = table.seq;
  if (call.kind === 'reset') record.reset = table.seq;
  const remembered = record.step > 0 ? record.over + record.forgetAfter : record.until;
  record.goesAt = Math.min(FOREVER, Math.max(remembered, now + MARK_KEPT_US));
  table.records.delete(name);
  table.records.set(name, record);
  return markOf(record);
}

/** A page of what a reader has not heard of yet. */
export function feedMarks(table: MarkTable, era: string, seq: number, reading: boolean, now: Microseconds): MarkFeed {
  const fresh = era !== table.era || seq > table.seq || (seq < table.floor && !reading);
  const from = fresh ? 0 : seq;
  const marks: Mark[] = [];
  let more = false;
  for (const record of table.records.values()) {
    if (record.seq <= from) continue;
    more = marks.length === MARKS_A_PAGE;
    if (more) break;
    marks.push(markOf(record));
  }
  const last = more ? (marks.at(-1) as Mark).seq : table.seq;
  return { era: table.era, born: table.born, now, fresh, marks, seq: last, more };
}

function block(
  record: MarkRecord,
  steps: readonly Microseconds[],
  forgetAfter: Microseconds,
  blocked: boolean,
  now: Microseconds,
): void {
  let step = 1;
  if (forgetAfter > 0) {
    if (!blocked) record.step = Math.min(record.step + 1, steps.length);
    record.forgetAfter = forgetAfter;
    step = Math.max(1, Math.min(record.step, steps.length));
  }
  const until = Math.min(FOREVER, now + (steps[step - 1] as Microseconds));
  record.until = blocked ? Math.max(record.until, until) : until;
  record.over = record.until;
}

function markOf({ policy, key, seq, until, step, reset }: MarkRecord): Mark {
  return { policy, key, seq, until, step, reset };
}
