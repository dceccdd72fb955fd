import type { Microseconds } from '../units.js';
import { newSchedule, reserveSlots, type Schedule, scheduleEnd } from './pace-ledger.js';
import type { PaceCall, PaceReply, PaceStore } from './pace-store.js';

/** Schedules looked at by each call to see whether they can be dropped. */
const LOOKED_AT = 2;

/** The schedules of all limiters that share this object. */
export class MemoryPace implements PaceStore {
  readonly #clock: () => Microseconds;
  readonly #schedules = new Map<string, Schedule>();
  #sweeper = this.#schedules.entries();

  constructor(clock: () => Microseconds) {
    this.#clock = clock;
  }

  pace(calls: readonly PaceCall[]): Promise<PaceReply>[] {
    return calls.map((call) => Promise.resolve(this.paceNow(call)));
  }

  paceNow(call: PaceCall): PaceReply {
    const now = this.#clock();
    const name = `${call.policy}:${call.key}`;
    const schedule = this.#schedules.get(name) ?? newSchedule(call, now);
    this.#schedules.set(name, schedule);
    const reply = reserveSlots(schedule, call, now);
    this.#sweep(now);
    return reply;
  }

  /** Keys held. */
  get size(): number {
    return this.#schedules.size;
  }

  #sweep(now: Microseconds): void {
    for (let i = 0; i < LOOKED_AT; i++) {
      const next = this.#sweeper.next();
      if (next.done) {
        this.#sweeper = this.#schedules.entries();
        return;
      }
      const [name, schedule] = next.value;
      if (scheduleEnd(schedule) <= now) this.#schedules.delete(name);
    }
  }
}
