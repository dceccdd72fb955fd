/** Why there is no seat. `docs/concurrency.md` explains each. */
export type SeatRefusal =
  /** As many are in flight as the limit allows. */
  | 'full'
  /** As many wait here already as `maxQueued` allows. */
  | 'queue-full'
  /** The ceiling store can't be asked, and the outage mode denies. */
  | 'degraded'
  /** The policy's mode, or the key's override, denies everything. */
  | 'denied-by-policy'
  /** The key has been blocked. */
  | 'blocked'
  /** The limiter was closed while the call waited. */
  | 'closed';

/** A place among those in flight, until it is released. */
export interface TakenSeat {
  readonly allowed: true;
  /** Frees the seat; again does nothing. Leaving it out keeps the seat taken for as long as this process lives. */
  release(): void;
  [Symbol.dispose](): void;
}

/** No place; nothing to release, though releasing it does no harm. */
export interface NoSeat {
  readonly allowed: false;
  readonly reason: SeatRefusal;
  release(): void;
  [Symbol.dispose](): void;
}

/** The answer of `enter`: `using seat = await api.enter(key); if (!seat.allowed) …` */
export type Seat = TakenSeat | NoSeat;

/** What there is to release of a seat that nobody counts. */
export const nothing = (): void => {};

/** A seat that `free` gives back, once. */
export function takenSeat(free: () => void): TakenSeat {
  let release = free;
  const once = (): void => {
    const now = release;
    release = nothing;
    now();
  };
  return { allowed: true, release: once, [Symbol.dispose]: once };
}

export function noSeat(reason: SeatRefusal): NoSeat {
  return { allowed: false, reason, release: nothing, [Symbol.dispose]: nothing };
}
