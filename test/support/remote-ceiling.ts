import type { CeilingStore, LeaseCall, LeaseReply } from '../../src/ceiling/ceiling-store.js';
import type { MarkStore } from '../../src/ceiling/mark-store.js';
import { MemoryCeiling, storeClock } from '../../src/ceiling/memory-ceiling.js';
import type { PaceCall, PaceStore } from '../../src/ceiling/pace-store.js';
import type { SeatCall, SeatStore } from '../../src/ceiling/seat-store.js';
import type { Time } from '../../src/time.js';
import type { Milliseconds } from '../../src/units.js';

/** What becomes of a call: answered, executed with the answer lost, or never executed. */
export type Fate = 'answer' | 'lose-reply' | 'lose-call' | 'reject';

/**
 * A ceiling that is a round trip away, for tests on `ManualTime`: a {@link MemoryCeiling} behind a wire that takes
 * `delayMs` each way, and that a test can cut, slow down or make lose what it carries. It has no `leaseNow`.
 */
export class RemoteCeiling implements CeilingStore {
  readonly inner: MemoryCeiling;
  readonly #time: Time;
  /** Each way. */
  delayMs: Milliseconds;
  /** False: not connected, as a client says that has lost its server. */
  ready = true;
  /** What happens to calls from now on. */
  fate: Fate = 'answer';
  /** Calls sent so far, in order. */
  readonly calls: LeaseCall[] = [];
  readonly seatCalls: SeatCall[] = [];
  readonly paceCalls: PaceCall[] = [];
  /** Round trips begun: calls that went out together count once. */
  trips = 0;
  heartbeats = 0;
  closed = 0;
  /** What a heartbeat answers; undefined: the members that have beaten here. */
  fleet: number | undefined;

  constructor(time: Time, delayMs: Milliseconds = 5, inner = new MemoryCeiling({ clock: storeClock(time) })) {
    this.#time = time;
    this.delayMs = delayMs;
    this.inner = inner;
  }

  lease(calls: readonly LeaseCall[]): Promise<LeaseReply>[] {
    this.trips += 1;
    this.calls.push(...calls);
    return calls.map((call) => this.#carry(() => this.inner.leaseNow(call)));
  }

  readonly seats: SeatStore = {
    hold: (calls) => {
      this.seatCalls.push(...calls);
      return calls.map((call) => this.#carry(() => this.inner.seats.holdNow(call)));
    },
  };

  /** Not there unless a test asks for it: it is polled, which would be in the way of tests that count timers. */
  marks?: MarkStore;

  withMarks(): this {
    const { marks } = this.inner;
    this.marks = {
      mark: (call) => this.#carry(() => marks.mark(call)),
      feed: (era, seq, reading) => this.#carry(() => marks.feed(era, seq, reading)),
    };
    return this;
  }

  readonly pacer: PaceStore = {
    pace: (calls) => {
      this.paceCalls.push(...calls);
      return calls.map((call) => this.#carry(() => this.inner.pacer.paceNow(call)));
    },
  };

  async heartbeat(group: string, holder: string): Promise<number> {
    this.heartbeats += 1;
    if (this.fate !== 'answer') throw new Error('no heartbeat');
    const size = await this.inner.heartbeat(group, holder);
    return this.fleet ?? size;
  }

  async close(): Promise<void> {
    this.closed += 1;
  }

  #carry<Reply>(execute: () => Reply | Promise<Reply>): Promise<Reply> {
    const { fate, delayMs } = this;
    return new Promise((resolve, reject) => {
      this.#time.after(delayMs, () => {
        if (fate === 'lose-call') return;
        if (fate === 'reject') {
          reject(new Error('ECONNRESET'));
          return;
        }
        const reply = execute();
        if (fate === 'answer') this.#time.after(delayMs, () => resolve(reply));
      });
    });
  }
}
