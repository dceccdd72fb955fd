import { levelAt } from '../algorithm/token-bucket.js';
import type { Keeper } from '../lease/keeper.js';
import type { WakeQueue } from '../lease/wake-queue.js';
import type { Observer } from '../telemetry/observer.js';
import type { MicroTokens, Milliseconds, Tokens } from '../units.js';
import { awaitsLease, type Decision, isAllowed, VERDICT, type Verdict } from './decision.js';
import type { Judge } from './judge.js';
import type { KeyState } from './key-state.js';

/** One `acquire` that waits. It has charged nothing, and charges all tiers at once when its turn comes. */
export interface Waiter {
  readonly cost: Tokens;
  readonly micro: MicroTokens;
  /** When it must be answered; Infinity for one that only waits for the store's answer. */
  readonly deadline: Milliseconds;
  /** Whether it waits for tokens up to its deadline, or only for the next answers of the store. */
  readonly patient: boolean;
  /** Answers of the store it has seen. */
  answers: number;
  settle(decision: Decision): void;
}

/** What the room needs of the limiter whose callers wait in it. */
export interface WaitingRoomParts {
  readonly judge: Judge;
  readonly keeper: Keeper;
  readonly observer: Observer;
  readonly wakes: WakeQueue<KeyState>;
  readonly now: () => Milliseconds;
  readonly policyName: string;
  /** Counts what was decided and answers it as a decision. */
  readonly decided: (state: KeyState, verdict: Verdict, cost: Tokens, now: Milliseconds) => Decision;
}

/** Answers of the store that one who is not patient sees at most: that of a call under way when it came, and its own. */
const ANSWERS_AWAITED = 2;

/** Where callers of `acquire` wait, first come first served for each key. */
export class WaitingRoom {
  readonly #parts: WaitingRoomParts;
  #size = 0;

  constructor(parts: WaitingRoomParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#size;
  }

  /** Whether waiting may turn `verdict` round: in time, where there is a `maxWaitMs`; by one answer, where there is none. */
  worthwhile(
    state: KeyState,
    verdict: Verdict,
    cost: Tokens,
    maxWaitMs: Milliseconds | undefined,
    now: Milliseconds,
  ): boolean {
    // Where an answer of the store is on its way, it decides; else what is known now does.
    if (maxWaitMs !== 0 && awaitsLease(verdict) && !blocked(state, now)) return true;
    if (maxWaitMs === undefined) return false;
    const wait = this.#parts.judge.wait(state, verdict, cost, now);
    return wait !== undefined && wait <= maxWaitMs;
  }

  /** Waits for a turn. */
  enter(
    state: KeyState,
    cost: Tokens,
    micro: MicroTokens,
    maxWaitMs: Milliseconds | undefined,
    signal: AbortSignal | undefined,
    now: Milliseconds,
  ): Promise<Decision> {
    return new Promise((resolve, reject) => {
      const observed = this.#parts.observer.waiting(this.#parts.policyName, cost);
      const aborted = (): void => {
        this.#leave(state, waiter);
        observed('aborted');
        reject(signal?.reason);
        this.serve(state, false, this.#parts.now());
      };
      const waiter: Waiter = {
        cost,
        micro,
        patient: maxWaitMs !== undefined,
        deadline: maxWaitMs === undefined ? Number.POSITIVE_INFINITY : now + maxWaitMs,
        answers: 0,
        settle: (decision) => {
          signal?.removeEventListener('abort', aborted);
          this.#leave(state, waiter);
          observed(decision.allowed ? 'allowed' : 'denied');
          resolve(decision);
        },
      };
      signal?.addEventListener('abort', aborted, { once: true });
      state.waiters ??= new Set();
      state.waiters.add(waiter);
      this.#size += 1;
      this.#arrange(state, now);
    });
  }

  /** Serves a key's queue in order: who can pass does, who can't in time is denied, the rest go on waiting. */
  serve(state: KeyState, answered: boolean, now: Milliseconds): void {
    const { judge, decided } = this.#parts;
    let holding: Verdict | undefined;
    for (const waiter of state.waiters ?? []) {
      if (answered) waiter.answers += 1;
      // Once one has to go on waiting, those behind it are only looked at for whether they still can.
      const verdict = holding ?? judge.judge(state, waiter.cost, waiter.micro, now, true);
      if (isAllowed(verdict) || this.#hopeless(state, waiter, verdict, now)) {
        waiter.settle(decided(state, verdict, waiter.cost, now));
      } else {
        holding ??= verdict;
      }
    }
    this.#arrange(state, now);
  }

  #hopeless(state: KeyState, waiter: Waiter, verdict: Verdict, now: Milliseconds): boolean {
    if (now >= waiter.deadline) return true;
    const soon = awaitsLease(verdict) && !blocked(state, now);
    if (!waiter.patient) {
      // A call that failed and is made again at once is no answer yet.
      const retrying = awaitsLease(verdict) && (state.account?.failures ?? 0) > 0;
      return !(soon || retrying) || waiter.answers >= ANSWERS_AWAITED;
    }
    if (soon) return false;
    const wait = this.#parts.judge.wait(state, verdict, waiter.cost, now);
    return wait === undefined || now + wait > waiter.deadline;
  }

  /** Tells the keeper what those who wait need now, and sees to it that the queue is looked at again in time. */
  #arrange(state: KeyState, now: Milliseconds): void {
    const { judge, keeper, wakes } = this.#parts;
    const { account } = state;
    const { local } = state.terms;
    let need: MicroTokens = 0;
    let head: MicroTokens = 0;
    let level = local === undefined ? Number.POSITIVE_INFINITY : levelAt(state, local, now);
    let soonest = Number.POSITIVE_INFINITY;
    let heldLocally = false;
    for (const waiter of state.waiters ?? []) {
      soonest = Math.min(soonest, waiter.deadline);
      // Tokens leased for one whom the local bucket holds back would die in the wallet.
      heldLocally ||= level < waiter.cost;
      if (heldLocally) {
        if (need === 0)
          soonest = Math.min(soonest, now + (judge.wait(state, VERDICT.localEmpty, waiter.cost, now) ?? 0));
        if (soonest <= now + 1) break;
        continue;
      }
      level -= waiter.cost;
      need += waiter.micro;
      head ||= waiter.micro;
    }
    if (account !== undefined) {
      account.waiting = need;
      account.waitingHead = head;
      if (need > 0) keeper.waitersChanged(account, now);
      if (need > 0 && keeper.unreachable(account)) soonest = Math.min(soonest, now + keeper.probeWait(now));
    }
    if (soonest < Number.POSITIVE_INFINITY) wakes.wakeBy(state, soonest);
  }

  #leave(state: KeyState, waiter: Waiter): void {
    if (state.waiters?.delete(waiter)) this.#size -= 1;
  }
}

/** Whether the store has said that asking again is useless for now. */
function blocked(state: KeyState, now: Milliseconds): boolean {
  return (state.account?.blockedUntil ?? 0) > now;
}
