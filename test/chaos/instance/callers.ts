import { writeSync } from 'node:fs';
import type { Limiter, Milliseconds, Observer } from '../../../src/index.js';
import { silentObserver } from '../../../src/telemetry/observer.js';
import { monotonicNow, WitnessedTime } from './clock.js';
import { ADMISSION_FIELDS, type Load, type StoreChange } from './messages.js';

const TICK_MS = 4;
/** Time without a turn of the event loop from which on the process counts as not having run. */
const STALL_MS = 5 * TICK_MS;
/** Callers that were held up by a stall are not made up for, beyond this. */
const MOST_ELAPSED_MS = 50;
const MOST_WAITING = 500;

/** One limiter, and what is known of the call that is being made to it. */
interface Seat {
  readonly time: WitnessedTime;
  readonly observer: Observer;
  limiter: Limiter | undefined;
  /** Whether the call that is being made began to wait. */
  waits: boolean;
}

/** All callers of one process: they ask at a steady rate, and note when they were let in and how long they waited. */
export class Callers {
  readonly #file: number;
  readonly #policy: string;
  readonly #seats: Seat[] = [];
  readonly #record = new Float64Array(ADMISSION_FIELDS);
  readonly denied: Record<string, number> = {};
  readonly storeChanges: StoreChange[] = [];
  readonly policyChanges: { at: Milliseconds; version: number }[] = [];
  allowed = 0;
  longestWaitMs: Milliseconds = 0;
  /** Holds every admission without a lease, as seen from one tick to the next. */
  unleased: { from: Milliseconds; until: Milliseconds } | undefined;
  #unleasedTokens = 0;
  #load: Load;
  #timer: NodeJS.Timeout | undefined;
  #lastBeat = monotonicNow();
  #stalledMs = 0;
  #due = 0;
  #turn = 0;
  #waiting = 0;
  #key = 0;

  constructor(file: number, policy: string, load: Load) {
    this.#file = file;
    this.#policy = policy;
    this.#load = load;
  }

  /** The clock and the observer of one more limiter, which is then to be passed to the answer. */
  seat(): { time: WitnessedTime; observer: Observer; take: (limiter: Limiter) => void } {
    const time = new WitnessedTime();
    const seat: Seat = { time, observer: this.#observer(() => seat), limiter: undefined, waits: false };
    this.#seats.push(seat);
    return {
      time,
      observer: seat.observer,
      take: (limiter) => {
        seat.limiter = limiter;
      },
    };
  }

  start(): void {
    this.#lastBeat = monotonicNow();
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  set load(load: Load) {
    this.#load = load;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const since = this.#lastBeat;
    this.#beat();
    this.#lookForUnleased(since);
    this.#due += (Math.min(this.#lastBeat - since, MOST_ELAPSED_MS) * this.#load.perSecond) / 1_000;
    for (; this.#due >= 1; this.#due -= 1) this.#ask(this.#turn++);
  }

  #lookForUnleased(since: Milliseconds): void {
    let tokens = 0;
    for (const { limiter } of this.#seats) for (const row of limiter?.stats() ?? []) tokens += row.tokensUnleased;
    if (tokens === this.#unleasedTokens) return;
    this.#unleasedTokens = tokens;
    this.unleased ??= { from: since, until: since };
    this.unleased.until = this.#lastBeat;
  }

  #ask(turn: number): void {
    const seat = this.#seats[turn % this.#seats.length];
    const { keys } = this.#load;
    if (!seat?.limiter || keys.length === 0) return;
    this.#key = Math.floor(turn / this.#seats.length) % keys.length;
    const key = keys[this.#key] as string;
    const limiter = seat.limiter.policy(this.#policy);
    const byTurns = Math.floor(turn / (this.#seats.length * keys.length)) % 2 === 0;
    seat.time.watch();
    if (byTurns || this.#waiting >= MOST_WAITING) {
      if (limiter.tryAcquire(key)) this.#admitted(seat.time.first, 1, this.#key);
      return;
    }
    seat.waits = false;
    const decision = limiter.acquire(key);
    // One that waited was noted when it was let in, by the observer.
    const at = seat.waits ? undefined : seat.time.first;
    const index = this.#key;
    decision.then(
      (decision) => {
        if (decision.allowed && at !== undefined) this.#admitted(at, 1, index);
        if (!decision.allowed) this.#denied(decision.reason);
      },
      (error: Error) => this.#denied(error.name),
    );
  }

  #admitted(at: Milliseconds, cost: number, key: number): void {
    this.allowed += 1;
    this.#record.set([at, cost, key]);
    writeSync(this.#file, this.#record);
  }

  #denied(reason: string): void {
    this.denied[reason] = (this.denied[reason] ?? 0) + 1;
  }

  /** Notes that the process runs, and how long it has not. */
  #beat(): void {
    const now = monotonicNow();
    const gap = now - this.#lastBeat;
    if (gap > STALL_MS) this.#stalledMs += gap;
    this.#lastBeat = now;
  }

  #observer(seat: () => Seat): Observer {
    return {
      ...silentObserver,
      waiting: (_policy, cost) => {
        seat().waits = true;
        const key = this.#key;
        const since = monotonicNow();
        this.#beat();
        const stalledBefore = this.#stalledMs;
        this.#waiting += 1;
        return (outcome) => {
          if (outcome === 'allowed') this.#admitted(seat().time.last, cost, key);
          this.#waiting -= 1;
          this.#beat();
          const waited = monotonicNow() - since - (this.#stalledMs - stalledBefore);
          this.longestWaitMs = Math.max(this.longestWaitMs, waited);
        };
      },
      degradedChanged: ({ degraded }) => this.storeChanges.push({ at: monotonicNow(), degraded }),
      policyChanged: ({ outcome, version }) => {
        if (outcome === 'applied') this.policyChanges.push({ at: monotonicNow(), version });
      },
    };
  }
}
