import { onAbort } from '../abort.js';
import type { CeilingStore } from '../ceiling/ceiling-store.js';
import type { PaceReply, PaceStore } from '../ceiling/pace-store.js';
import { Crowd } from '../crowd.js';
import { CeilingError } from '../errors.js';
import { ledgerName } from '../lease/account.js';
import { Breaker } from '../lease/breaker.js';
import { newShareBucket, takeShare } from '../lease/share-bucket.js';
import { WakeQueue } from '../lease/wake-queue.js';
import { Pacer, type QueueFull, type Slot } from '../pace/pacer.js';
import { type CeilingTier, isPaced } from '../policy/policy.js';
import type { Observer } from '../telemetry/observer.js';
import type { Random, Time } from '../time.js';
import { MICRO, MICROS_PER_MS, type MicroTokens, type Milliseconds } from '../units.js';
import type { CheckedOptions } from './acquire-options.js';
import type { Clerk } from './clerk.js';
import { type Decision, isAllowed, VERDICT, type Verdict } from './decision.js';
import { ATTEMPT, type Judge } from './judge.js';
import type { KeyState } from './key-state.js';
import { levelOf } from './local-tier.js';
import { PaceLine, type Place, type Seeker } from './pace-line.js';
import type { PolicyState } from './policy-state.js';

/** What the room needs of the limiter whose callers wait in it. */
export interface PacedRoomParts {
  readonly owner: PolicyState;
  readonly judge: Judge;
  readonly clerk: Clerk;
  readonly observer: Observer;
  readonly time: Time;
  readonly random: Random;
  readonly now: () => Milliseconds;
  readonly store: Pick<CeilingStore, 'ready' | 'pacer'>;
  readonly holder: string;
  readonly deadlineMs: Milliseconds;
  readonly outdated: () => void;
  /** Asks anew, where the key's ceiling is no leaky bucket any more. */
  readonly again: (
    state: KeyState,
    micro: MicroTokens,
    options: CheckedOptions,
    now: Milliseconds,
  ) => Promise<Decision>;
}

interface Caller extends Seeker {
  readonly state: KeyState;
  readonly line: PaceLine<Caller>;
  readonly options: CheckedOptions;
  /** A slot has been asked for and not been answered. */
  asking: boolean;
  left: boolean;
  readonly settle: (outcome: Verdict | Promise<Decision>, now: Milliseconds) => void;
}

/**
 * Where callers of `acquire` wait whose ceiling is a leaky bucket: each for a slot in the fleet's schedule, and when it
 * has come, for the local tier, which is charged only then. A slot that its caller does not use goes to the next one
 * here that costs no more, so that they all move up; one that nobody here can use is lost.
 */
export class PacedRoom {
  readonly #parts: PacedRoomParts;
  readonly #pacer: Pacer;
  readonly #breaker: Breaker;
  readonly #wakes: WakeQueue<Caller>;
  readonly #lines = new WeakMap<KeyState, PaceLine<Caller>>();
  readonly #crowd: Crowd;

  constructor(parts: PacedRoomParts) {
    this.#parts = parts;
    this.#crowd = new Crowd(parts.time);
    this.#pacer = new Pacer({ ...parts, store: parts.store.pacer ?? noPacer });
    this.#breaker = new Breaker(parts.random, parts.deadlineMs);
    this.#wakes = new WakeQueue(parts.time, (caller, now) => this.#woken(caller, now));
  }

  /** How many wait. */
  get size(): number {
    return this.#crowd.size;
  }

  /** Whether the store of schedules is out of reach. */
  get degraded(): boolean {
    return this.#breaker.open;
  }

  /** Stops what is left to be woken; everybody has been sent away. */
  stop(): void {
    this.#wakes.close();
  }

  acquire(state: KeyState, micro: MicroTokens, options: CheckedOptions, now: Milliseconds): Promise<Decision> {
    const { owner, clerk, observer } = this.#parts;
    const { cost, maxWaitMs, maxQueued, signal } = options;
    const line = this.#lineOf(state);
    if (line.seekers.size >= maxQueued) {
      return Promise.resolve(clerk.decided(state, VERDICT.queueFull, cost, micro, 0, now));
    }
    return new Promise((resolve, reject) => {
      const observed = observer.waiting(owner.policy.name, cost);
      const aborted = (): void => {
        this.#leave(caller);
        observed('aborted');
        reject(signal?.reason);
      };
      const caller: Caller = {
        state,
        line,
        micro,
        options,
        deadline: now + (maxWaitMs ?? Number.POSITIVE_INFINITY),
        place: undefined,
        asking: false,
        left: false,
        wakeAt: Number.POSITIVE_INFINITY,
        settle: (outcome, now) => {
          leaveSignal();
          if (typeof outcome !== 'number') {
            observed('denied');
            resolve(outcome);
            return;
          }
          const decision = clerk.decided(state, outcome, cost, micro, 0, now);
          observed(decision.allowed ? 'allowed' : 'denied');
          resolve(decision);
        },
      };
      const leaveSignal = onAbort(signal, aborted);
      line.seekers.add(caller);
      this.#crowd.grow(1);
      this.#seek(caller, now);
    });
  }

  /** Something about a key has changed, or about its terms: whoever has no slot yet looks again. */
  changed(state: KeyState, now: Milliseconds): void {
    for (const caller of this.#lines.get(state)?.seekers ?? []) {
      const { mode } = state.terms;
      if (isPaced(state.terms) && mode !== 'allow' && mode !== 'deny') {
        if (caller.place || caller.asking) continue;
        this.#wakes.forget(caller);
        this.#seek(caller, now);
      } else {
        this.#leave(caller);
        const options = { ...caller.options, maxWaitMs: patienceLeft(caller, now) };
        caller.settle(this.#parts.again(state, caller.micro, options, now), now);
      }
    }
  }

  /** Sends everybody away who waits for a key. */
  close(state: KeyState, now: Milliseconds): void {
    for (const caller of this.#lines.get(state)?.seekers ?? []) this.#answer(caller, VERDICT.closed, now);
  }

  /** Gets a caller a slot; or has it wait for what else it lacks; or answers it where it can't be in time. */
  #seek(caller: Caller, now: Milliseconds): void {
    const { judge } = this.#parts;
    const { state, micro, options } = caller;
    const { local } = state.terms;
    const never = judge.never(state, options.cost, micro);
    if (never !== undefined) {
      this.#answer(caller, never, now);
    } else if (now < state.blockEnd) {
      this.#sleep(caller, state.blockEnd, VERDICT.blocked, now);
    } else if (local !== undefined && levelOf(state, local, now) < options.cost) {
      const wait = judge.wait(state, VERDICT.localEmpty, micro, 0, now) ?? Number.POSITIVE_INFINITY;
      this.#sleep(caller, now + wait, VERDICT.localEmpty, now);
    } else this.#find(caller, now);
  }

  /** Gets a caller a slot that nobody here needs, or a new one. */
  #find(caller: Caller, now: Milliseconds): void {
    const { line, deadline } = caller;
    const spare = line.takeSpare(caller, now);
    if (spare) this.#seat(caller, spare);
    // Known to be too late: no slot is taken that would not be used.
    else if (line.nextAt > Math.max(deadline, now)) this.#tooLate(caller, line.nextAt, now);
    else if (this.#parts.store.ready && this.#breaker.admits(now)) this.#ask(caller, now);
    else this.#outage(caller, now);
  }

  #ask(caller: Caller, now: Milliseconds): void {
    const { owner } = this.#parts;
    const { state, micro } = caller;
    const { policy } = owner;
    const terms = paceTerms(policy.version, state.terms.ceiling as CeilingTier);
    caller.asking = true;
    this.#breaker.sent(now);
    this.#pacer.reserve(ledgerName(policy, state.terms), owner.nameOf(state.key), terms, micro).then(
      (slot) => {
        caller.asking = false;
        this.#reached(caller);
        this.#answered(caller, slot);
      },
      (error: Error) => {
        caller.asking = false;
        const failedAt = this.#parts.now();
        // All who asked in one call fail with one error.
        if (error !== this.#breaker.lastError && this.#breaker.failed(error, false, failedAt)) {
          this.#parts.observer.degradedChanged({ degraded: true, forMs: undefined, error });
        }
        if (!caller.left) this.#outage(caller, failedAt);
      },
    );
  }

  #answered(caller: Caller, slot: Slot | QueueFull): void {
    const now = this.#parts.now();
    const { state, line, micro, deadline } = caller;
    const ceiling = state.terms.ceiling as CeilingTier | undefined;
    if (!slot.reserved) {
      line.roomAt = now + slot.retryAfterMs;
      if (!caller.left) this.#answer(caller, VERDICT.queueFull, now);
      return;
    }
    const place = { at: slot.at, until: slot.until, micro };
    if (ceiling) line.nextAt = Math.max(line.nextAt, slot.at + spacingMs(micro, ceiling));
    if (caller.left) this.#free(caller, place, now);
    // A shadow policy must not hold up what it lets pass.
    else if (state.terms.mode === 'shadow') this.#depart(caller, now);
    else if (slot.at > Math.max(deadline, now)) {
      this.#free(caller, place, now);
      this.#tooLate(caller, slot.at, now);
    } else this.#seat(caller, place);
  }

  #woken(caller: Caller, now: Milliseconds): void {
    const { place } = caller;
    if (place && now < place.until) this.#depart(caller, now);
    else {
      // Held up for so long that it would crowd the next.
      caller.place = undefined;
      this.#seek(caller, now);
    }
  }

  /** Its slot has come: it goes if the local tier lets it, which is charged now. */
  #depart(caller: Caller, now: Milliseconds): void {
    const { state, micro, options, place } = caller;
    const verdict = this.#parts.judge.judge(state, options.cost, micro, now, ATTEMPT.departs);
    if (isAllowed(verdict)) {
      caller.place = undefined;
      this.#answer(caller, verdict, now);
      return;
    }
    caller.place = undefined;
    if (place) this.#free(caller, place, now);
    this.#seek(caller, now);
  }

  /** The schedule can't be asked: the policy says what then. */
  #outage(caller: Caller, now: Milliseconds): void {
    const { owner, judge } = this.#parts;
    const { state, line, micro, options } = caller;
    const { policy, counters } = owner;
    line.degraded = true;
    line.roomAt = this.#breaker.open ? this.#breaker.probeAt : now + this.#parts.deadlineMs;
    let passes = policy.outage.mode === 'allow';
    if (policy.outage.mode === 'share') {
      const rate = judge.shareRate(state.terms.ceiling);
      line.share ??= newShareBucket(now);
      passes = rate > 0 && takeShare(line.share, options.cost, rate, now);
    }
    if (!passes) {
      this.#answer(caller, VERDICT.ceilingDegraded, now);
      return;
    }
    const verdict = judge.judge(state, options.cost, micro, now, ATTEMPT.departs);
    if (verdict === VERDICT.allowed) counters.tokensUnleased += options.cost;
    this.#answer(caller, verdict === VERDICT.allowed ? VERDICT.allowedDegraded : verdict, now);
  }

  #reached({ line }: Caller): void {
    const { observer, now } = this.#parts;
    const since = this.#breaker.openSince;
    if (this.#breaker.succeeded()) {
      observer.degradedChanged({ degraded: false, forMs: now() - (since ?? now()), error: undefined });
    }
    line.degraded = false;
    line.share = undefined;
  }

  #sleep(caller: Caller, until: Milliseconds, verdict: Verdict, now: Milliseconds): void {
    if (until > caller.deadline || caller.state.terms.mode === 'shadow') this.#answer(caller, verdict, now);
    else this.#wakes.wakeBy(caller, until);
  }

  #tooLate(caller: Caller, at: Milliseconds, now: Milliseconds): void {
    caller.line.roomAt = at;
    this.#answer(caller, VERDICT.ceilingEmpty, now);
  }

  #seat(caller: Caller, place: Place): void {
    caller.place = place;
    this.#wakes.wakeBy(caller, place.at);
  }

  #free({ line }: Caller, place: Place, now: Milliseconds): void {
    line.free(place, now, (caller, to) => this.#seat(caller, to));
  }

  #answer(caller: Caller, verdict: Verdict, now: Milliseconds): void {
    this.#leave(caller);
    caller.settle(verdict, now);
  }

  #leave(caller: Caller): void {
    if (caller.left) return;
    caller.left = true;
    const { line, place } = caller;
    line.seekers.delete(caller);
    this.#wakes.forget(caller);
    caller.place = undefined;
    if (place) this.#free(caller, place, this.#parts.now());
    this.#crowd.grow(-1);
  }

  #lineOf(state: KeyState): PaceLine<Caller> {
    const known = this.#lines.get(state);
    if (known) return known;
    const line = new PaceLine<Caller>();
    this.#lines.set(state, line);
    state.pace = line;
    return line;
  }
}

function paceTerms(version: number, ceiling: CeilingTier): Parameters<Pacer['reserve']>[2] {
  const { rateNum, rateDen } = ceiling;
  const queue = ceiling.algorithm === 'leaky-bucket' ? Math.round(ceiling.queue * MICRO) : 0;
  return { version, rateNum, rateDen, queue };
}

function spacingMs(micro: MicroTokens, { rateNum, rateDen }: CeilingTier): Milliseconds {
  return ((micro / rateNum) * rateDen) / MICROS_PER_MS;
}

function patienceLeft({ options, deadline }: Caller, now: Milliseconds): Milliseconds | undefined {
  return options.maxWaitMs === undefined ? undefined : Math.max(0, deadline - now);
}

/** A ceiling store that keeps no schedules is one that never answers: the outage mode decides. */
const noPacer: PaceStore = {
  pace: (calls) =>
    calls.map(() => Promise.reject<PaceReply>(new CeilingError('This ceiling store keeps no schedules.'))),
};
