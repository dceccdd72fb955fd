import { CELLS_A_KEY } from '../cells.js';
import { InvalidKeyError, show } from '../errors.js';
import { ledgerName } from '../lease/account.js';
import type { Keeper } from '../lease/keeper.js';
import type { WakeQueue } from '../lease/wake-queue.js';
import { type Policy, termsFor } from '../policy/policy.js';
import type { Time, Timer } from '../time.js';
import type { Milliseconds } from '../units.js';
import { KeyIndex } from './key-index.js';
import { firstCellOf, KeyPages, pageOf } from './key-pages.js';
import { KeyState, NOWHERE } from './key-state.js';
import { freshIn, levelOf, meterOf } from './local-tier.js';
import type { PolicyState } from './policy-state.js';

/** Longest key, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 512;
/** The key of the bucket that all keys share for which there is no room; no caller's key is empty. */
const OVERFLOW_KEY = '';
/** How many keys are looked at for one that can be dropped when a new one needs its place. */
const CANDIDATES = 8;
/** A key unused for this long is dropped, if its bucket is full and its wallet empty. */
const UNUSED_MS: Milliseconds = 1_000;
/** Keys are looked at in turn for such as are unused: so many at once, with a pause, each of them not more often than this. */
const AT_ONCE = 1_024;
const PAUSE_MS: Milliseconds = 5;
const ROUND_MS: Milliseconds = 1_000;
/** And not more rarely than this. */
const LONGEST_ROUND_MS: Milliseconds = 86_400_000;

/** What a table is made of. */
export interface KeyTableParts {
  readonly owner: PolicyState;
  readonly keeper: Keeper;
  readonly wakes: WakeQueue<KeyState>;
  readonly time: Time;
  readonly maxKeys: number;
}

/**
 * The keys of one policy: at most `maxKeys` besides those with an override, and one overflow bucket for the rest. Those
 * that go unused are dropped by a hand that goes round them as that of a clock: a key costs no timer of its own, and
 * none of its own calls does anything for it.
 */
export class KeyTable {
  readonly #parts: KeyTableParts;
  readonly #index = new KeyIndex();
  readonly #pages = new KeyPages();
  #overflow: KeyState | undefined;
  /** The next slot to be looked at, and how many are left in this round. */
  #hand = 0;
  #left = 0;
  /** When the first of those that were looked at in this round may be dropped, at the earliest. */
  #soonest: Milliseconds = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;
  #timerAt: Milliseconds = Number.POSITIVE_INFINITY;

  constructor(parts: KeyTableParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#pages.size;
  }

  *states(): Iterable<KeyState> {
    yield* this.#pages.states();
    if (this.#overflow) yield this.#overflow;
  }

  /** Where `key` lies; undefined: it is new, or has no place of its own. */
  slotOf(key: string): number | undefined {
    return this.#index.get(key);
  }

  /** The cells among which those of the key in `slot` are. */
  cellsOf(slot: number): Float64Array {
    return this.#pages.cells[pageOf(slot)] as Float64Array;
  }

  /**
   * The state of `key`, shaped by the policy in force. Checks a key only where it is new: the others have been.
   *
   * @param sure whether it gets a place of its own though there may be no room
   */
  find(key: string, now: Milliseconds, sure?: boolean): KeyState {
    return this.open(key, this.#index.get(key), now, sure);
  }

  /** The same, where it is known what {@link slotOf} says. */
  open(key: string, slot: number | undefined, now: Milliseconds, sure?: boolean): KeyState {
    return this.refresh(slot === undefined ? this.#admit(key, now, sure) : (this.#pages.at(slot) as KeyState), now);
  }

  /** The state of an account's key, if it is still here. */
  peek(key: string): KeyState | undefined {
    if (key === OVERFLOW_KEY) return this.#overflow;
    const slot = this.#index.get(key);
    return slot === undefined ? undefined : this.#pages.at(slot);
  }

  /** Brings a state under the policy in force now, and back to where its cells decide if they can. */
  refresh(state: KeyState, now: Milliseconds): KeyState {
    if (state.policy !== this.#parts.owner.policy) this.#reshape(state, now);
    if (this.#isPlain(state, now)) state.plain = this.#parts.owner.edition;
    return state;
  }

  /** Says anew until when a key is blocked. `reset`: it is as if it had never been asked for, but for what is leased. */
  mark(state: KeyState, reset: boolean, now: Milliseconds): void {
    state.blockEnd = this.#parts.owner.blockEnd(state.key);
    state.plain = 0;
    if (!reset) return;
    this.#fill(state, now);
    state.share = undefined;
    state.account?.forgive();
  }

  /** Looks for no unused keys any more. */
  close(): void {
    this.#timer?.cancel();
    this.#timerAt = Number.NEGATIVE_INFINITY;
  }

  /** Whether nothing but its cells is needed to decide about a key. Whoever changes that writes 0 to `plain`. */
  #isPlain({ terms, policy, waiters, overflow, blockEnd }: KeyState, now: Milliseconds): boolean {
    const { local, mode } = terms;
    return (
      terms === policy.terms &&
      waiters === undefined &&
      !overflow &&
      now >= blockEnd &&
      (mode === 'enforce' || mode === 'shadow') &&
      (local === undefined || local.algorithm === 'token-bucket')
    );
  }

  #admit(key: string, now: Milliseconds, sure: boolean | undefined): KeyState {
    checkKey(key);
    const { owner, maxKeys } = this.#parts;
    // Whoever has terms of its own keeps them, and a block its key: there are only as many as have been named.
    const named = sure || owner.policy.overrides.has(key) || owner.blockEnd(key) > now;
    if (this.size >= maxKeys && !named && !this.#makeRoom(now)) {
      const terms = termsFor(owner.policy, key);
      // Who is let through or turned away whatever happens needs no bucket.
      if (terms.mode === 'allow' || terms.mode === 'deny')
        return new KeyState(OVERFLOW_KEY, NOWHERE, new Float64Array(CELLS_A_KEY), 0, owner.policy, terms);
      this.#overflow ??= this.#newState(OVERFLOW_KEY, NOWHERE, new Float64Array(CELLS_A_KEY), 0, now);
      return this.#overflow;
    }
    const slot = this.#pages.take();
    const state = this.#newState(key, slot, this.cellsOf(slot), firstCellOf(slot), now);
    this.#pages.put(slot, state);
    this.#index.add(key, slot);
    this.#lookBy(now + ROUND_MS, now);
    return state;
  }

  #newState(key: string, slot: number, cells: Float64Array, first: number, now: Milliseconds): KeyState {
    const { owner, keeper } = this.#parts;
    const { policy } = owner;
    const state = new KeyState(key, slot, cells, first, policy, termsFor(policy, key));
    this.#fill(state, now);
    state.blockEnd = owner.blockEnd(key);
    if (state.terms.ceiling) state.account = keeper.open(key, owner, cells, first);
    return state;
  }

  /** Makes the local tier as if it had never been used. */
  #fill(state: KeyState, now: Milliseconds): void {
    state.tokens = state.terms.local?.burst ?? 0;
    state.at = now;
    state.meter = meterOf(state.terms.local, this.#parts.time.wallNow);
  }

  /** Drops one of the next few keys that can be. */
  #makeRoom(now: Milliseconds): boolean {
    for (let looked = 0, steps = 0; looked < CANDIDATES && steps < this.#pages.extent; steps++) {
      const state = this.#next();
      if (state === undefined) continue;
      looked += 1;
      if (this.#droppableAt(state, now) > now) continue;
      this.#drop(state);
      return true;
    }
    return false;
  }

  /** What lies in the slot that the hand points to, which then points to the next. */
  #next(): KeyState | undefined {
    if (this.#hand >= this.#pages.extent) this.#hand = 0;
    return this.#pages.at(this.#hand++);
  }

  #lookBy(at: Milliseconds, now: Milliseconds): void {
    if (at >= this.#timerAt) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.#parts.time.after(at - now, () => this.#look());
  }

  /** Looks at the next keys of this round, and sees to it that the rest will be, and all of them again. */
  #look(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#parts.time.now();
    if (this.#left <= 0) {
      this.#left = this.#pages.extent;
      this.#soonest = Number.POSITIVE_INFINITY;
    }
    for (let i = Math.min(AT_ONCE, this.#left); i > 0; i--) {
      const state = this.#next();
      if (state === undefined) continue;
      const at = this.#droppableAt(state, now);
      if (at <= now) this.#drop(state);
      else this.#soonest = Math.min(this.#soonest, at);
    }
    this.#left -= AT_ONCE;
    if (this.#left > 0) this.#lookBy(now + PAUSE_MS, now);
    else if (this.size > 0)
      this.#lookBy(now + Math.min(LONGEST_ROUND_MS, Math.max(ROUND_MS, this.#soonest - now)), now);
  }

  #drop(state: KeyState): void {
    const { keeper, wakes } = this.#parts;
    const { slot } = state;
    this.#index.delete(state.key);
    wakes.forget(state);
    if (state.account) keeper.forget(state.account);
    state.leaveRow();
    this.#pages.give(slot);
    if (this.size === 0) this.#index.clear();
  }

  /**
   * When a key may be forgotten, if nobody asks for it until then: once that is the same as keeping it, its local bucket
   * full, its wallet empty, nothing owed or awaited.
   */
  #droppableAt(state: KeyState, now: Milliseconds): Milliseconds {
    const { account, waiters, wakeAt } = state;
    const { local } = state.terms;
    // Those who wait are looked after by then.
    if (waiters !== undefined) return Math.max(now + UNUSED_MS, wakeAt < Number.POSITIVE_INFINITY ? wakeAt : 0);
    const fresh = local ? freshIn(state, local, now) : 0;
    if (fresh > 0) return now + fresh;
    if (!account) return now;
    if (!account.idle) return now + UNUSED_MS;
    if (account.attempted > 0) account.measure(now);
    return Math.max(account.blockedUntil, account.activeAt + UNUSED_MS);
  }

  /** Brings a state of an older policy under the one in force: local tokens are inherited, the account is re-termed. */
  #reshape(state: KeyState, now: Milliseconds): void {
    const { owner, keeper } = this.#parts;
    const { policy, since } = owner;
    const from = state.terms.local;
    const terms = termsFor(policy, state.key);
    const to = terms.local;
    if (to) {
      // The older terms held until the newer came into force, whenever the key is asked for again.
      const held = from ? levelOf(state, from, since) : to.burst;
      state.tokens = Math.min(to.burst, inherited(policy, held, from?.burst ?? to.burst, to.burst));
      state.at = Math.max(state.at, since);
    }
    if (to && from?.algorithm === to.algorithm) state.meter?.adopt(to);
    // Another algorithm counts other things: it begins as if nothing had been.
    else state.meter = meterOf(to, this.#parts.time.wallNow);
    state.policy = policy;
    state.terms = terms;
    state.plain = 0;
    const { account } = state;
    if (account && (!terms.ceiling || account.ledger !== ledgerName(policy, terms))) {
      keeper.release(account, now);
      state.account = undefined;
    }
    if (!terms.ceiling) return;
    if (state.account) keeper.reconcile(state.account);
    else state.account = keeper.open(state.key, owner, state.cells, state.first);
  }
}

/** The inheritance rules of `Inheritance`, for a local bucket; `reset` here is a full one. */
function inherited(policy: Policy, held: number, fromBurst: number, toBurst: number): number {
  switch (policy.inheritance) {
    case 'proportional':
      return (held / fromBurst) * toBurst;
    case 'additive':
      return held + toBurst - fromBurst;
    case 'reset':
      return toBurst;
    case 'as-is':
      return held;
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** @throws {InvalidKeyError} */
export function checkKey(key: unknown): void {
  if (typeof key !== 'string' || key === '')
    throw new InvalidKeyError(`Expected \`key\` to be a non-empty string, got ${show(key)}.`);
  // All of them are the same bytes in UTF-8, so keys that differ here would share a bucket at the store.
  if (LONE_SURROGATE.test(key)) {
    throw new InvalidKeyError('Expected `key` to be well-formed text, got one with half a surrogate pair.');
  }
  // At most three bytes a UTF-16 unit: short keys need no counting.
  if (key.length * 3 <= MAX_KEY_BYTES) return;
  const bytes = new TextEncoder().encode(key).length;
  if (bytes > MAX_KEY_BYTES) {
    throw new InvalidKeyError(`Expected \`key\` to be at most ${MAX_KEY_BYTES} bytes of UTF-8, got ${bytes} bytes.`);
  }
}
