import type { PaceCall, PaceReply, PaceStore } from '../ceiling/pace-store.js';
import type { CeilingTerms } from '../policy/policy.js';
import { atDeadline, type Time, type Timer } from '../time.js';
import { MICROS_PER_MS, type MicroTokens, type Milliseconds } from '../units.js';

/** The terms slots are reserved under: a leaky bucket's, in the store's numbers. */
export interface PaceTerms extends Pick<CeilingTerms, 'rateNum' | 'rateDen'> {
  readonly version: number;
  readonly queue: MicroTokens;
}

/** A slot: it may be used from `at` up to, and without, `until`, on this process's monotonic clock. */
export interface Slot {
  readonly reserved: true;
  readonly at: Milliseconds;
  readonly until: Milliseconds;
}

/** The queue is full: behind it there is room for this caller in `retryAfterMs` at the earliest. */
export interface QueueFull {
  readonly reserved: false;
  readonly retryAfterMs: Milliseconds;
}

export interface PacerParts {
  readonly store: PaceStore;
  readonly time: Pick<Time, 'now' | 'after'>;
  readonly holder: string;
  /** A call that has taken longer is given up, and its slots with it. */
  readonly deadlineMs: Milliseconds;
  /** Told where the store holds to a newer version than a caller's. */
  readonly outdated?: (policy: string, version: number) => void;
}

/**
 * How long after its slot a caller may still go. One that comes later than this would crowd the next: it asks again.
 * So, over the whole fleet, two departures are never closer together than cost ÷ rate, less this.
 */
export const SLOT_LASTS_MS: Milliseconds = 50;

interface Waiter {
  readonly cost: MicroTokens;
  readonly answer: (slot: Slot | QueueFull) => void;
  readonly fail: (error: Error) => void;
}

/** What this process has under way about one key: one call at a time, so that none overtakes another. */
interface Line {
  readonly policy: string;
  readonly key: string;
  terms: PaceTerms;
  waiting: Waiter[];
  asked: readonly Waiter[] | undefined;
}

/**
 * Reserves slots in the fleet's schedules (`PaceStore`): what a ceiling of the algorithm `leaky-bucket` is made of.
 *
 *     const pacer = new Pacer({ store: ceiling.pacer, time, holder, deadlineMs: 100 });
 *     const slot = await pacer.reserve('api', 'tenant-7', terms, 1_000_000);
 *     if (!slot.reserved) return deny('queue-full', slot.retryAfterMs);
 *     await until(slot.at);                       // never early: counted from when the answer came
 *     if (time.now() >= slot.until) again();      // held up: that slot is gone
 *
 * All callers of one tick travel in one call for each key. A caller that gives up while its call is under way, or that
 * does not use its slot, leaves it unused: the schedule has a gap, which nobody else may fill.
 */
export class Pacer {
  readonly #parts: PacerParts;
  readonly #lines = new Map<string, Line>();
  #tick: Timer | undefined;
  #seq = 0;

  constructor(parts: PacerParts) {
    this.#parts = parts;
  }

  /**
   * A slot for a caller of `cost`, or that the queue is full.
   *
   * @throws CeilingError where the store failed, or {@link Error} where it did not answer in time. What it may have
   * reserved is not used.
   */
  reserve(policy: string, key: string, terms: PaceTerms, cost: MicroTokens): Promise<Slot | QueueFull> {
    return new Promise((answer, fail) => {
      const name = `${policy}:${key}`;
      const line = this.#lines.get(name) ?? { policy, key, terms, waiting: [], asked: undefined };
      this.#lines.set(name, line);
      line.terms = terms;
      line.waiting.push({ cost, answer, fail });
      if (!line.asked) this.#tick ??= this.#parts.time.after(0, () => this.#flush());
    });
  }

  #flush(): void {
    this.#tick = undefined;
    const lines = [...this.#lines.values()].filter(({ waiting, asked }) => waiting.length > 0 && !asked);
    if (lines.length === 0) return;
    const calls = lines.map((line) => this.#call(line));
    for (const [index, promise] of this.#parts.store.pace(calls).entries()) this.#await(lines[index] as Line, promise);
  }

  #call(line: Line): PaceCall {
    const { policy, key, terms } = line;
    line.asked = line.waiting;
    line.waiting = [];
    this.#seq += 1;
    return {
      policy,
      key,
      ...terms,
      holder: this.#parts.holder,
      seq: this.#seq,
      costs: line.asked.map(({ cost }) => cost),
    };
  }

  #await(line: Line, promise: Promise<PaceReply>): void {
    const { time, deadlineMs } = this.#parts;
    const asked = line.asked ?? [];
    let open = true;
    const settle = (what: () => void): void => {
      if (!open) return;
      open = false;
      deadline.cancel();
      what();
      this.#next(line);
    };
    const failed = (error: Error): void => {
      for (const { fail } of asked) fail(error);
    };
    const deadline = atDeadline(time, deadlineMs, () =>
      settle(() => failed(new Error(`The store did not answer within ${deadlineMs} ms.`))),
    );
    promise.then(
      (reply) => settle(() => this.#answered(line, asked, reply)),
      (error: Error) => settle(() => failed(error)),
    );
  }

  #answered(line: Line, asked: readonly Waiter[], reply: PaceReply): void {
    const now = this.#parts.time.now();
    if (reply.version > line.terms.version) this.#parts.outdated?.(line.policy, reply.version);
    const { queue, rateNum, rateDen } = line.terms;
    const longestMs = ((queue / rateNum) * rateDen) / MICROS_PER_MS;
    for (const [index, { answer }] of asked.entries()) {
      const slot = reply.slots[index];
      if (slot === undefined) {
        answer({ reserved: false, retryAfterMs: Math.max(1, Math.ceil(reply.behind / MICROS_PER_MS - longestMs)) });
      } else {
        // Counted from now, and not from when the store answered: late by the way back, never early.
        const at = now + Math.max(0, slot - reply.now) / MICROS_PER_MS;
        answer({ reserved: true, at, until: at + SLOT_LASTS_MS });
      }
    }
  }

  #next(line: Line): void {
    line.asked = undefined;
    if (line.waiting.length > 0) this.#tick ??= this.#parts.time.after(0, () => this.#flush());
    else this.#lines.delete(`${line.policy}:${line.key}`);
  }
}
