import { onAbort } from '../abort.js';
import { Crowd } from '../crowd.js';
import type { Keeper } from '../lease/keeper.js';
import type { WakeQueue } from '../lease/wake-queue.js';
import { Place } from '../line.js';
import type { Observer } from '../telemetry/observer.js';
import type { Time } from '../time.js';
import type { MicroTokens, Milliseconds, Tokens } from '../units.js';
import { awaitsLease, isAllowed, passesAsShadow, VERDICT, type Verdict } from './decision.js';
import { ATTEMPT, type Judge } from './judge.js';
import type { KeyState } from './key-state.js';
import { levelOf } from './local-tier.js';
import { type Waiter, WaitQueue } from './wait-queue.js';

/** What the room needs of the limiter whose callers wait in it. */
export interface WaitingRoomParts {
  readonly judge: Judge;
  readonly keeper: Keeper;
  readonly observer: Observer;
  readonly time: Time;
  readonly wakes: WakeQueue<KeyState>;
  readonly now: () => Milliseconds;
  readonly policyName: string;
}

/** Answers of the store that one who is not patient sees at most: that of a call under way when it came, and its own. */
const ANSWERS_AWAITED = 2;

/** One who would wait: what it asks for, and how long it would. */
export interface Newcomer {
  readonly cost: Tokens;
  readonly micro: MicroTokens;
  readonly maxWaitMs: Milliseconds | undefined;
  readonly signal: AbortSignal | undefined;
  readonly priority: number;
}

/** Where callers of `acquire` wait, by priority and first come first served for each key. */
export class WaitingRoom {
  readonly #parts: WaitingRoomParts;
  readonly #crowd: Crowd;

  constructor(parts: WaitingRoomParts) {
    this.#parts = parts;
    this.#crowd = new Crowd(parts.time);
  }

  get size(): number {
    return this.#crowd.size;
  }

  /** Whether waiting may turn `verdict` round: in time, where there is a `maxWaitMs`; by one answer, where there is none. */
  worthwhile(state: KeyState, verdict: Verdict, newcomer: Newcomer, now: Milliseconds): boolean {
    const { micro, maxWaitMs, priority } = newcomer;
    // Where an answer of the store is on its way, it decides; else what is known now does.
    if (maxWaitMs !== 0 && awaitsLease(verdict) && !blocked(state, micro, now)) return true;
    if (maxWaitMs === undefined) return false;
    const wait = this.#parts.judge.wait(state, verdict, micro, state.waiters?.ahead(priority) ?? 0, now);
    return wait !== undefined && wait <= maxWaitMs;
  }

  /** Waits for a turn. How that goes is counted, and made an answer of, by `answer`: at once, when it is known. */
  enter<Answer>(
    state: KeyState,
    newcomer: Newcomer,
    now: Milliseconds,
    answer: (verdict: Verdict, ahead: MicroTokens, now: Milliseconds) => Answer | Promise<Answer>,
  ): Promise<Answer> {
    state.waiters ??= new WaitQueue();
    state.plain = 0;
    const queue = state.waiters;
    const { cost, micro, maxWaitMs, signal, priority } = newcomer;
    return new Promise((resolve, reject) => {
      const observed = this.#parts.observer.waiting(this.#parts.policyName, cost);
      const aborted = (): void => {
        this.#leave(state, queue, waiter);
        observed('aborted');
        reject(signal?.reason);
        this.serve(state, false, this.#parts.now());
      };
      const waiter: Waiter = {
        cost,
        micro,
        priority,
        place: new Place(),
        patient: maxWaitMs !== undefined,
        deadline: maxWaitMs === undefined ? Number.POSITIVE_INFINITY : now + maxWaitMs,
        since: queue.answers,
        settle: (verdict, ahead, now) => {
          leaveSignal();
          const passes = isAllowed(verdict) || passesAsShadow(state.terms.mode, verdict);
          observed(passes ? 'allowed' : 'denied');
          resolve(answer(verdict, ahead, now));
        },
      };
      const leaveSignal = onAbort(signal, aborted);
      queue.add(waiter);
      this.#crowd.grow(1);
      this.#arrange(state, now);
    });
  }

  /**
   * Serves a key's queue in order: who can pass does, who can't in time is denied, the rest go on waiting. Those behind
   * one that goes on waiting are looked at only where something has `changed` for them too: an answer, or the terms.
   */
  serve(state: KeyState, changed: boolean, now: Milliseconds): void {
    const queue = state.waiters;
    if (!queue) return;
    const all = changed || now >= queue.soonestDeadline;
    let holding: Verdict | undefined;
    let ahead: MicroTokens = 0;
    if (all) queue.soonestDeadline = Number.POSITIVE_INFINITY;
    for (const waiter of queue) {
      let verdict: Verdict;
      if (holding === undefined) {
        verdict = this.#parts.judge.judge(state, waiter.cost, waiter.micro, now, ATTEMPT.again);
      } else {
        if (!all) break;
        verdict = this.#parts.judge.never(state, waiter.cost, waiter.micro) ?? holding;
      }
      if (isAllowed(verdict) || this.#hopeless(state, queue, waiter, verdict, ahead, now)) {
        this.#answer(state, queue, waiter, verdict, ahead, now);
        continue;
      }
      holding ??= verdict;
      ahead += waiter.micro;
      queue.soonestDeadline = Math.min(queue.soonestDeadline, waiter.deadline);
    }
    this.#arrange(state, now);
  }

  /** The store has answered for this key, or can't. */
  answered(state: KeyState, now: Milliseconds): void {
    if (!state.waiters) return;
    state.waiters.answers += 1;
    this.serve(state, true, now);
  }

  /** Sends everybody away. */
  close(state: KeyState, now: Milliseconds): void {
    const queue = state.waiters;
    for (const waiter of queue ?? []) this.#answer(state, queue as WaitQueue, waiter, VERDICT.closed, 0, now);
  }

  #answer(
    state: KeyState,
    queue: WaitQueue,
    waiter: Waiter,
    verdict: Verdict,
    ahead: MicroTokens,
    now: Milliseconds,
  ): void {
    this.#leave(state, queue, waiter);
    waiter.settle(verdict, ahead, now);
  }

  #hopeless(
    state: KeyState,
    queue: WaitQueue,
    waiter: Waiter,
    verdict: Verdict,
    ahead: MicroTokens,
    now: Milliseconds,
  ): boolean {
    if (now >= waiter.deadline) return true;
    const soon = awaitsLease(verdict) && !blocked(state, waiter.micro, now);
    if (!waiter.patient) {
      // A call that failed and is made again at once is no answer yet.
      const retrying = awaitsLease(verdict) && (state.account?.failures ?? 0) > 0;
      return !(soon || retrying) || queue.answers - waiter.since >= ANSWERS_AWAITED;
    }
    if (soon) return false;
    const wait = this.#parts.judge.wait(state, verdict, waiter.micro, ahead, now);
    return wait === undefined || now + wait > waiter.deadline;
  }

  /** Tells the keeper what those who wait need now, and sees to it that the queue is looked at again in time. */
  #arrange(state: KeyState, now: Milliseconds): void {
    const { judge, keeper, wakes } = this.#parts;
    const { account } = state;
    const { local, ceiling } = state.terms;
    const most = ceiling?.burst ?? 0;
    let need: MicroTokens = 0;
    let head: MicroTokens = 0;
    let level = local === undefined ? Number.POSITIVE_INFINITY : levelOf(state, local, now);
    let soonest = state.waiters?.soonestDeadline ?? Number.POSITIVE_INFINITY;
    const blocked = now < state.blockEnd;
    // Nor for one who can't spend them yet.
    if (blocked && state.waiters) soonest = Math.min(soonest, state.blockEnd);
    for (const waiter of (!blocked && state.waiters) || []) {
      if (level < waiter.cost) {
        // Tokens leased for one whom the local bucket holds back would die in the wallet.
        if (need === 0)
          soonest = Math.min(soonest, now + (judge.wait(state, VERDICT.localEmpty, waiter.micro, 0, now) ?? 0));
        break;
      }
      level -= waiter.cost;
      need += waiter.micro;
      head ||= waiter.micro;
      // No more than this is ever asked for at once.
      if (need >= most) break;
    }
    if (account !== undefined) {
      account.waiting = need;
      account.waitingHead = head;
      if (need > 0) keeper.waitersChanged(account, now);
      if (need > 0 && keeper.unreachable(account)) {
        const wait = judge.wait(state, VERDICT.ceilingDegraded, head, 0, now) ?? 1;
        soonest = Math.min(soonest, now + wait, now + keeper.probeWait(account, now));
      }
    }
    wakes.wakeBy(state, soonest);
  }

  #leave(state: KeyState, queue: WaitQueue, waiter: Waiter): void {
    if (!queue.delete(waiter)) return;
    if (queue.size === 0 && state.waiters === queue) state.waiters = undefined;
    this.#crowd.grow(-1);
  }
}

/** Whether the store has said that asking for this much is useless for now. */
function blocked(state: KeyState, micro: MicroTokens, now: Milliseconds): boolean {
  return state.account?.blockedFor(micro, now) ?? false;
}
