import type { SeatCall, SeatReply, SeatStore } from '../ceiling/seat-store.js';
import { CeilingError } from '../errors.js';
import { atDeadline, type Time } from '../time.js';
import type { Milliseconds } from '../units.js';

/** Where calls about seats go, and how long they may take. */
export interface SeatRoad {
  readonly seats: SeatStore;
  readonly time: Time;
  readonly deadlineMs: Milliseconds;
}

/**
 * Sends calls. Each of them ends once: `ended` is told its place and its reply, or none where it failed or took too long.
 * Whatever comes after that is ignored for ever.
 */
export function sendSeatCalls(
  { seats, time, deadlineMs }: SeatRoad,
  calls: readonly SeatCall[],
  ended: (place: number, reply?: SeatReply) => void,
): void {
  const pending = new Set(calls.keys());
  const end = (place: number, reply?: SeatReply): void => {
    if (!pending.delete(place)) return;
    if (pending.size === 0) deadline.cancel();
    ended(place, reply);
  };
  const deadline = atDeadline(time, deadlineMs, () => {
    for (const place of pending) end(place);
  });
  for (const [place, reply] of repliesOf(seats, calls).entries()) {
    reply.then(
      (reply) => end(place, reply),
      () => end(place),
    );
  }
}

/** The replies to `calls`, those that could not even be sent included. */
function repliesOf(seats: SeatStore, calls: readonly SeatCall[]): readonly Promise<SeatReply>[] {
  try {
    return seats.hold(calls);
  } catch (error) {
    return calls.map(() => Promise.reject(new CeilingError(String(error), { cause: error })));
  }
}
