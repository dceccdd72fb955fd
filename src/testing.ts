import type { Time, Timer } from './time.js';
import type { EpochMilliseconds, Milliseconds } from './units.js';

export { MemoryCeiling, type MemoryCeilingOptions, storeClock } from './ceiling/memory-ceiling.js';
export { memoryPolicySource } from './policy/memory-source.js';

interface PendingTask {
  readonly at: Milliseconds;
  readonly order: number;
  readonly task: () => void;
}

/**
 * A clock that stands still until it is told to move, for tests: `createLimiter({ time: new ManualTime() })`. Timers run
 * inside {@link advance}, in order of their times; between two of them promises get a chance to settle.
 */
export class ManualTime implements Time {
  #now: Milliseconds;
  #wallOffset: EpochMilliseconds;
  #order = 0;
  readonly #tasks = new Set<PendingTask>();

  /** @param now where the monotonic clock starts; @param wallNow what the wall clock shows then. */
  constructor(now: Milliseconds = 0, wallNow: EpochMilliseconds = 1_700_000_000_000) {
    this.#now = now;
    this.#wallOffset = wallNow - now;
  }

  now = (): Milliseconds => this.#now;

  wallNow = (): EpochMilliseconds => this.#now + this.#wallOffset;

  after(delayMs: Milliseconds, task: () => void): Timer {
    const pending = { at: this.#now + Math.max(0, delayMs), order: this.#order++, task };
    this.#tasks.add(pending);
    return { cancel: () => this.#tasks.delete(pending) };
  }

  /** Timers that have not run yet. */
  get pending(): number {
    return this.#tasks.size;
  }

  /** Moves both clocks on by `ms`, running what falls due on the way. */
  async advance(ms: Milliseconds): Promise<void> {
    const until = this.#now + ms;
    await settled();
    for (let next = this.#next(until); next; next = this.#next(until)) {
      this.#tasks.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.task();
      await settled();
    }
    this.#now = until;
    await settled();
  }

  /** Sets the wall clock forward or back without the monotonic one, as a suspend or an administrator does. */
  stepWall(ms: Milliseconds): void {
    this.#wallOffset += ms;
  }

  /** Moves both clocks on without running anything, as a process that was stopped finds them. */
  stall(ms: Milliseconds): void {
    this.#now += ms;
  }

  #next(until: Milliseconds): PendingTask | undefined {
    let first: PendingTask | undefined;
    for (const task of this.#tasks) {
      if (task.at > until) continue;
      if (!first || task.at < first.at || (task.at === first.at && task.order < first.order)) first = task;
    }
    return first;
  }
}

/** Lets promises that can settle do so. */
async function settled(): Promise<void> {
  for (let i = 0; i < 8; i++) await Promise.resolve();
}
