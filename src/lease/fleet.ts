import { type CeilingStore, FLEET_TTL_MS } from '../ceiling/ceiling-store.js';
import type { Random, Time, Timer } from '../time.js';
import type { Milliseconds } from '../units.js';

/** How often a limiter says that it is alive. */
const HEARTBEAT_MS: Milliseconds = FLEET_TTL_MS / 6;
/** Soon after it began it says so again, and then ever less often: those who began with it were not counted yet. */
const FIRST_HEARTBEAT_MS: Milliseconds = 250;
/** What the first answer says is who was there before; only from the next one on is the size of the fleet known. */
const ANSWERS_TO_KNOW = 2;
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
  #pauseMs = FIRST_HEARTBEAT_MS;
  #answers = 0;
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
    if (this.#answers < ANSWERS_TO_KNOW) return 0;
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
    const pause = this.#pauseMs * (0.9 + 0.2 * this.#parts.random());
    this.#pauseMs = Math.min(HEARTBEAT_MS, 2 * this.#pauseMs);
    this.#timer = this.#parts.time.after(pause, () => this.#beat());
    if (this.#parts.store.ready) void this.#count();
  }

  /** A beat that fails is told by the lease calls that fail beside it; the next one tries again. */
  async #count(): Promise<void> {
    const { store, group, holder, time, answered } = this.#parts;
    try {
      const size = await store.heartbeat(group, holder);
      if (this.#closed || !(size >= 1)) return;
      this.#answers += 1;
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
