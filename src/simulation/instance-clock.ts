import type { Time, Timer } from '../time.js';
import type { EpochMilliseconds, Milliseconds } from '../units.js';
import { type EventQueue, type Handler, NEVER } from './event-queue.js';

/** What every wall clock of a simulation shows when it begins. */
export const WALL_START: EpochMilliseconds = 1_700_000_000_000;

/**
 * The clocks and timers of one process. They run at a pace of their own, and with the process they can be stopped for a
 * while (a stall: due timers then run late) or for good (a crash: they never run).
 */
export class InstanceClock implements Time {
  readonly #queue: EventQueue;
  readonly #pace: number;
  /** Until when the process stands still. */
  stalledUntil: Milliseconds = 0;
  stopped = false;

  /** @param pace how much faster than true time it runs; 1: exactly. */
  constructor(queue: EventQueue, pace: number) {
    this.#queue = queue;
    this.#pace = pace;
  }

  readonly now = (): Milliseconds => this.#queue.now * this.#pace;

  readonly wallNow = (): EpochMilliseconds => WALL_START + this.#queue.now;

  after(delayMs: Milliseconds, task: () => void): Timer {
    const timer = new ClockTimer(this, task);
    // Whole milliseconds, rounded up, as `setTimeout` has them.
    const delay = delayMs <= 0 ? 0 : Math.ceil(delayMs) / this.#pace;
    this.#queue.push(this.#queue.now + delay, timer);
    return timer;
  }

  /** When something due now can happen to this process: now, when a stall ends, or never again. */
  when(now: Milliseconds): Milliseconds {
    if (this.stopped) return NEVER;
    return this.stalledUntil > now ? this.stalledUntil : now;
  }
}

class ClockTimer implements Handler, Timer {
  /** Until it is cancelled: most timers are deadlines that never come. */
  quiet = false;
  readonly #clock: InstanceClock;
  #task: (() => void) | undefined;

  constructor(clock: InstanceClock, task: () => void) {
    this.#clock = clock;
    this.#task = task;
  }

  fire(now: Milliseconds): Milliseconds {
    const task = this.#task;
    if (!task) return NEVER;
    const when = this.#clock.when(now);
    if (when !== now) return when;
    this.#task = undefined;
    task();
    return NEVER;
  }

  cancel(): void {
    this.#task = undefined;
    this.quiet = true;
  }
}
