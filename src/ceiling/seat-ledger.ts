import type { Microseconds } from '../units.js';
import { type SeatCall, type SeatReply, WANT_TTL_US } from './seat-store.js';

/** The seats of one key: who sits on how many. Twin of `lua/seats.lua`. */
export interface SeatTable {
  version: number;
  limit: number;
  readonly holders: Map<string, HolderSeats>;
}

interface HolderSeats {
  seq: number;
  seats: number;
  granted: number;
  /** What it was not granted. */
  unmet: number;
  heardAt: Microseconds;
  lostAfter: Microseconds;
}

export function newSeatTable(): SeatTable {
  return { version: -1, limit: 0, holders: new Map() };
}

/** Executes one call at `now`. */
export function holdSeats(table: SeatTable, call: SeatCall, now: Microseconds): SeatReply {
  meetLimit(table, call);
  endLost(table, now);
  const mine = table.holders.get(call.holder);
  const { version } = table;
  if (mine && call.seq <= mine.seq) {
    const repeated = call.seq === mine.seq;
    const granted = repeated ? mine.granted : 0;
    const status = repeated ? 'granted' : 'stale';
    return { seq: call.seq, status, granted, taken: taken(table), most: fairMost(table, now), version };
  }
  const asked: HolderSeats = {
    seq: call.seq,
    seats: call.held,
    granted: 0,
    unmet: call.want,
    heardAt: now,
    lostAfter: call.lostAfter,
  };
  table.holders.set(call.holder, asked);
  const most = fairMost(table, now);
  const free = table.limit - taken(table);
  const room = most === 0 ? free : Math.min(free, most - call.held);
  asked.granted = Math.max(0, Math.min(call.want, room));
  asked.seats += asked.granted;
  asked.unmet -= asked.granted;
  return { seq: call.seq, status: 'granted', granted: asked.granted, taken: taken(table), most, version };
}

/** When the last of the holders will be lost if none is heard of again: the table is then as if it had never been. */
export function tableEnd(table: SeatTable): Microseconds {
  let end = 0;
  for (const { heardAt, lostAfter } of table.holders.values()) end = Math.max(end, heardAt + lostAfter);
  return end;
}

/** The newest limit holds; of two under the same version the smaller. */
function meetLimit(table: SeatTable, { version, limit }: SeatCall): void {
  if (version > table.version) {
    table.version = version;
    table.limit = limit;
  } else if (version === table.version) {
    table.limit = Math.min(table.limit, limit);
  }
}

function endLost(table: SeatTable, now: Microseconds): void {
  for (const [id, holder] of table.holders) {
    // A clock that was set back must not keep the seats of a dead holder for longer than they would have been kept.
    holder.heardAt = Math.min(holder.heardAt, now);
    if (holder.heardAt + holder.lostAfter <= now) table.holders.delete(id);
  }
}

function taken(table: SeatTable): number {
  let sum = 0;
  for (const { seats } of table.holders.values()) sum += seats;
  return sum;
}

/** Max-min fair sharing of whole seats: the level L with Σ min(demand, L) = limit, rounded up; 0 where all have enough. */
function fairMost(table: SeatTable, now: Microseconds): number {
  const demands: number[] = [];
  let sum = 0;
  for (const { seats, unmet, heardAt } of table.holders.values()) {
    const demand = seats + (now - heardAt < WANT_TTL_US ? unmet : 0);
    demands.push(demand);
    sum += demand;
  }
  if (sum <= table.limit) return 0;
  demands.sort((a, b) => a - b);
  let rest = table.limit;
  let left = demands.length;
  for (const demand of demands) {
    if (demand * left > rest) break;
    rest -= demand;
    left -= 1;
  }
  return Math.max(1, Math.ceil(rest / left));
}
