import { type CeilingStore, FLEET_TTL_MS } from '../ceiling/ceiling-store.js';
import type { Random, Time, Timer } from '../time.js';
import type { Milliseconds } from '../units.js';

/** How often a limiter says that it is alive. */
const HEARTBEAT_MS: Milliseconds = FLEET_TTL_MS / 6;
/** How long the largest fleet seen is remembered. */
const MEMORY_MS: Milliseconds = 600_000;

/** Who counts itself, and where. */
export interface FleetParts {
  readonly store: CeilingStore;
  readonly time: Time;
  readonly random: Random;
  readonly group: string;
  readonly holder: string;
  /** Told when the store has answered. */
  readonly answered: () => void;
}

/**
 * How many limiters there are: each says now and then that it is alive, and learns how many others have. What counts
 * in an outage is the largest number of the last ten minutes, so that a fleet that seems to shrink as it loses the
 * store does not hand out more.
 */
export class Fleet {
  readonly #parts: FleetParts;
  readonly #seen: { size: number; at: Milliseconds }[] = [];
  #timer: Timer | undefined;
  #started = false;
  #closed = false;

  constructor(parts: FleetParts) {
    this.#parts = parts;
  }

  /** Starts the heartbeat, if it is not running. */
  start(): void {
    if (this.#started || this.#closed) return;
    this.#started = true;
    this.#beat();
  }

  /** Largest size in the last ten minutes, or the last one learnt; 0 while none was. */
  get size(): number {
    this.#forget();
    let largest = 0;
    for (const { size } of this.#seen) largest = Math.max(largest, size);
    return largest;
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  /** The next beat does not wait for the answer to this one: a store may never give it. */
  #beat(): void {
    const pause = HEARTBEAT_MS * (0.9 + 0.2 * this.#parts.random());
    this.#timer = this.#parts.time.after(pause, () => this.#beat());
    if (this.#parts.store.ready) void this.#count();
  }

  /** A beat that fails is told by the lease calls that fail beside it; the next one tries again. */
  async #count(): Promise<void> {
    const { store, group, holder, time, answered } = this.#parts;
    try {
      const size = await store.heartbeat(group, holder);
      if (this.#closed || !(size >= 1)) return;
      this.#forget();
      this.#seen.push({ size, at: time.now() });
      answered();
    } catch {}
  }

  #forget(): void {
    const since = this.#parts.time.now() - MEMORY_MS;
    while (this.#seen.length > 1 && (this.#seen[0] as { at: Milliseconds }).at < since) this.#seen.shift();
  }
}
