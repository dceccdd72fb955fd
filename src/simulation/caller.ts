import { RetrySlots, retryAfterSeconds } from '../http/index.js';
import type { Decision } from '../index.js';
import type { Milliseconds } from '../units.js';
import { earningTime } from '../verb/earning-time.js';
import { type Arrivals, arrivalsOf, zipf } from './arrivals.js';
import type { BucketWatch } from './bucket-watch.js';
import { type EventQueue, type Handler, NEVER, once } from './event-queue.js';
import type { Share } from './fairness.js';
import type { Instance } from './instance.js';
import type { Traffic } from './parse-scenario.js';
import type { Dice } from './random.js';
import type { GroupTally, Recorder } from './recorder.js';

/** What a caller is told of its surroundings. */
export interface CallerParts {
  readonly queue: EventQueue;
  readonly recorder: Recorder;
  readonly instance: Instance;
  readonly group: GroupTally;
  readonly traffic: Traffic;
  readonly dice: Dice;
  /** Where what this instance got of the one bucket it asks for is counted. */
  readonly share: Share | undefined;
}

/** Most that the turn of a denied call is put off, where it is. */
const MOST_SPREAD_MS: Milliseconds = 60_000;

/** One call on its way: made, perhaps waiting, perhaps coming back. */
interface Call {
  readonly bucket: BucketWatch;
  readonly cameAt: Milliseconds;
  readonly ideal: boolean;
  retriesLeft: number;
}

/** Makes the calls of one traffic at one instance, and sees what becomes of them. */
export class Caller implements Handler {
  /** A call that is decided at once settles nothing anybody waits for. */
  readonly quiet: boolean;
  readonly #parts: CallerParts;
  readonly #arrivals: Arrivals;
  readonly #options: { readonly cost: number; readonly maxWaitMs?: Milliseconds };
  readonly #rank: (() => number) | undefined;
  readonly #bucket: BucketWatch | undefined;
  readonly #slots = new RetrySlots(MOST_SPREAD_MS);
  #due: Milliseconds;

  constructor(parts: CallerParts) {
    const { traffic, recorder, dice } = parts;
    this.#parts = parts;
    this.quiet = traffic.retries === 0;
    this.#arrivals = arrivalsOf(traffic, dice);
    this.#options = {
      cost: traffic.cost,
      ...(traffic.maxWaitMs !== undefined && { maxWaitMs: traffic.maxWaitMs }),
    };
    this.#rank = traffic.keys > 0 ? zipf(traffic.keys, traffic.skew, dice) : undefined;
    this.#bucket = this.#rank ? undefined : recorder.bucket(traffic.policy, traffic.key);
    this.#due = this.#arrivals.after(0);
    if (this.#due < NEVER) parts.queue.push(this.#due, this);
  }

  fire(now: Milliseconds): Milliseconds {
    const { instance, traffic } = this.#parts;
    if (instance.running) {
      const when = instance.clock.when(now);
      if (when !== now) return when;
      for (let i = 0; i < traffic.size; i++) this.#come(now);
    }
    this.#due = this.#arrivals.after(this.#due);
    return this.#due;
  }

  #come(now: Milliseconds): void {
    const { recorder, group, share, traffic } = this.#parts;
    const bucket = this.#bucket ?? recorder.bucket(traffic.policy, `key-${this.#rank?.()}`);
    const ideal = recorder.offered(group, bucket, share, traffic.cost, now);
    this.#make({ bucket, cameAt: now, ideal, retriesLeft: traffic.retries }, now);
  }

  #make(call: Call, now: Milliseconds): void {
    const { instance, traffic, recorder, group } = this.#parts;
    const running = instance.running?.get(traffic.policy);
    if (!running) return;
    recorder.requested(group, now);
    const { limiter, counters } = running;
    const { key } = call.bucket;
    if (traffic.verb === 'tryAcquire') {
      if (traffic.retries > 0) this.#decided(call, limiter.decide(key, traffic.cost), now);
      else if (limiter.tryAcquire(key, traffic.cost)) this.#admitted(call, now);
      else this.#denied(call, now);
      return;
    }
    const { allowed } = counters;
    const denied = counters.deniedLocal + counters.deniedCeiling + counters.deniedPolicy;
    const decision = limiter.acquire(key, this.#options);
    if (counters.allowed > allowed) {
      this.#admitted(call, now);
    } else if (
      call.retriesLeft === 0 &&
      counters.deniedLocal + counters.deniedCeiling + counters.deniedPolicy > denied
    ) {
      this.#denied(call, now);
    } else {
      decision.then((decision) => this.#decided(call, decision, this.#parts.queue.now), instance.failed);
    }
  }

  #decided(call: Call, decision: Decision, now: Milliseconds): void {
    if (decision.allowed) {
      this.#admitted(call, now);
    } else if (call.retriesLeft > 0 && decision.retryAfterMs !== undefined) {
      call.retriesLeft -= 1;
      this.#parts.queue.push(
        now + this.#comesBackIn(call.bucket.key, decision.retryAfterMs, now),
        once((then) => this.#make(call, then)),
      );
    } else {
      this.#denied(call, now);
    }
  }

  /** When one who does as it is told comes back. */
  #comesBackIn(key: string, retryAfterMs: Milliseconds, now: Milliseconds): Milliseconds {
    const { instance, traffic } = this.#parts;
    if (traffic.retryAfter === 'exact') return retryAfterMs;
    const limiter = instance.running?.get(traffic.policy)?.limiter;
    const spread = traffic.retryAfter === 'spread' && limiter;
    const gapMs = spread ? earningTime(limiter, key, traffic.cost) : 0;
    return retryAfterSeconds(spread ? this.#slots.next(key, retryAfterMs, gapMs, now) : retryAfterMs) * 1_000;
  }

  #admitted({ bucket, cameAt }: Call, now: Milliseconds): void {
    const { recorder, group, share, traffic } = this.#parts;
    recorder.admitted(group, bucket, share, traffic.cost, cameAt, now);
  }

  #denied({ bucket, ideal }: Call, now: Milliseconds): void {
    const { recorder, group } = this.#parts;
    recorder.denied(group, bucket, ideal, now);
  }
}
