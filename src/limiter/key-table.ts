import { CELL, type Rows } from '../cells.js';
import { Account, ledgerName } from '../lease/account.js';
import type { Keeper } from '../lease/keeper.js';
import type { WakeQueue } from '../lease/wake-queue.js';
import { liveBalance } from '../lease/wallet.js';
import { isLeased, isPaced, termsFor } from '../policy/policy.js';
import type { Time, Timer } from '../time.js';
import type { MicroTokens, Milliseconds } from '../units.js';
import { checkKey } from './check-key.js';
import { type Held, keyOf, restOf } from './held.js';
import { inherited } from './inherited.js';
import { KeptAccounts } from './kept-accounts.js';
import { KeyIndex } from './key-index.js';
import { KeyPages, pageOf, rowOf } from './key-pages.js';
import { KeyState, type Place } from './key-state.js';
import { levelOf, meterOf } from './local-tier.js';
import type { PolicyState } from './policy-state.js';
import { droppableAt, UNUSED_MS } from './unused.js';

// Here, so that they are constants to the compiler, which those of another module are not.
const { tokens: TOKENS, at: AT, plain: PLAIN } = CELL;

/** The key of the bucket that all keys share for which there is no room; no caller's key is empty. */
const OVERFLOW_KEY = '';
/** How many keys are looked at for one that can be dropped when a new one needs its place. */
const CANDIDATES = 8;
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
  readonly pages = new KeyPages();
  readonly kept: KeptAccounts;
  /** Where keys leave this process under other names: which is whose. */
  readonly #keys: Map<string, string> | undefined;
  #overflow: KeyState | undefined;
  /** The next slot to be looked at, and how many are left in this round. */
  #hand = 0;
  #left = 0;
  /** The edition in force when this round began. */
  #roundEdition = 1;
  /** When the first of those that were looked at in this round may be dropped, at the earliest. */
  #soonest: Milliseconds = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;
  #timerAt: Milliseconds = Number.POSITIVE_INFINITY;

  constructor(parts: KeyTableParts) {
    this.#parts = parts;
    this.#keys = parts.owner.digest && new Map();
    this.kept = new KeptAccounts(parts.owner, this.pages, parts.keeper);
  }

  get size(): number {
    return this.pages.size;
  }

  /** The keys of which more is held than their numbers. */
  *states(): Iterable<KeyState> {
    for (const slot of this.pages.slots()) {
      const held = this.pages.at(slot);
      if (held instanceof KeyState) yield held;
    }
    if (this.#overflow) yield this.#overflow;
  }

  /** The same, and those that have an account that is not idle. */
  *busy(): Iterable<KeyState> {
    for (const slot of this.pages.slots()) {
      const held = this.pages.at(slot);
      if (held instanceof KeyState || this.kept.at(slot)?.idle !== false) continue;
      this.#hold(this.#stateOf(held as string | Account, slot));
    }
    yield* this.states();
  }

  /** A newer policy is in force: the hand brings those that nobody asks for under it. */
  replaced(now: Milliseconds): void {
    if (this.size > 0) this.#lookBy(now + ROUND_MS, now);
  }

  /** All accounts, or those that do not rest. */
  *accounts(busyOnly?: boolean): Iterable<Account> {
    yield* this.kept.all(busyOnly);
    if (this.#overflow?.account) yield this.#overflow.account;
  }

  /** Where `key` lies; undefined: it is new, or has no place of its own. */
  slotOf(key: string): number | undefined {
    return this.#index.get(key);
  }

  /** The rows among which that of the key in `slot` is. */
  #rowsOf(slot: number): Rows {
    return this.pages.rows[pageOf(slot)] as Rows;
  }

  /** What all wallets hold that may be spent now. */
  heldAt(now: Milliseconds): MicroTokens {
    let held = this.#overflow?.account ? liveBalance(this.#overflow.account, now) : 0;
    for (const slot of this.pages.slots()) held += this.kept.heldAt(slot, now);
    return held;
  }

  /**
   * The state of `key`, shaped by the policy in force. Checks a key only where it is new: the others have been.
   *
   * @param sure whether it gets a place of its own though there may be no room
   */
  find(key: string, now: Milliseconds, sure?: boolean): KeyState {
    const slot = this.#index.get(key);
    return slot === undefined ? this.#hold(this.#admit(key, now, sure)) : this.open(key, slot, now);
  }

  /**
   * The same, where it is known what {@link slotOf} says, and for no longer than this turn.
   *
   * @param kept whether the state of a new key is kept, as somebody may come to wait for it
   */
  open(key: string, slot: number | undefined, now: Milliseconds, kept?: boolean): KeyState {
    if (slot === undefined) return kept ? this.#hold(this.#admit(key, now)) : this.#admit(key, now);
    const held = this.pages.at(slot) as Held;
    if (held instanceof KeyState) return this.refresh(held, now);
    return this.refresh(this.#hold(this.#stateOf(held, slot)), now);
  }

  /** The state of a key, if there is one: where there is none, nobody waits for it. */
  peek(key: string): KeyState | undefined {
    if (key === OVERFLOW_KEY) return this.#overflow;
    const slot = this.#index.get(key);
    const held = slot === undefined ? undefined : this.pages.at(slot);
    return held instanceof KeyState ? held : undefined;
  }

  /** The key that is known outside this process by `name`, if it is here. */
  keyOf(name: string): string | undefined {
    return this.#keys ? this.#keys.get(name) : name;
  }

  /** Brings a state under the policy in force now, and back to where its cells decide if they can. */
  refresh(state: KeyState, now: Milliseconds): KeyState {
    if (state.policy !== this.#parts.owner.policy) this.#reshape(state, now);
    if (this.#isPlain(state, now)) state.plain = this.#parts.owner.edition;
    return state;
  }

  /**
   * Says anew until when a key is blocked. `reset`: it is as if it had never been asked for, but for what is leased.
   * Answers its state, if it is here.
   */
  mark(key: string, reset: boolean, now: Milliseconds): KeyState | undefined {
    const slot = this.#index.get(key);
    if (slot === undefined) return undefined;
    const state = this.open(key, slot, now);
    state.blockEnd = this.#parts.owner.blockEnd(key);
    state.plain = 0;
    if (!reset) return state;
    this.#fill(state, now);
    state.account?.forgive();
    return state;
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
      !isPaced(terms) &&
      (local === undefined || local.algorithm === 'token-bucket')
    );
  }

  #admit(key: string, now: Milliseconds, sure?: boolean): KeyState {
    checkKey(key);
    const { owner, maxKeys } = this.#parts;
    // Whoever has terms of its own keeps them, and a block its key: there are only as many as have been named.
    const named = sure || owner.policy.overrides.has(key) || owner.blockEnd(key) > now;
    if (this.size >= maxKeys && !named && !this.#makeRoom(now)) {
      const terms = termsFor(owner.policy, key);
      // Who is let through or turned away whatever happens needs no bucket.
      if (terms.mode === 'allow' || terms.mode === 'deny') return new KeyState(OVERFLOW_KEY, owner.policy, terms);
      this.#overflow ??= this.#newState(OVERFLOW_KEY, undefined, now);
      return this.refresh(this.#overflow, now);
    }
    const slot = this.pages.take();
    const state = this.refresh(this.#newState(key, this.#placeOf(slot), now), now);
    // A key that is asked for once may never be asked for again.
    this.pages.put(slot, this.#rests(state, now) ? restOf(state) : state);
    this.#index.add(key, slot);
    this.#keys?.set(owner.nameOf(key), key);
    this.#lookBy(now + ROUND_MS, now);
    return state;
  }

  /** The state of a key that has rested, as it was then. */
  #stateOf(held: string | Account, slot: number): KeyState {
    const place = this.#placeOf(slot);
    const policy = this.#parts.owner.ofEdition(this.pages.edition(slot));
    const state = new KeyState(keyOf(held), policy, policy.terms, place);
    state.account = this.kept.at(slot);
    return state;
  }

  #placeOf(slot: number): Place {
    return { slot, rows: this.#rowsOf(slot), row: rowOf(slot) };
  }

  /** Keeps a state, until it may rest. */
  #hold(state: KeyState): KeyState {
    if (state.kept) this.pages.put(state.slot, state);
    return state;
  }

  /** Whether its numbers, and its account, are all there is about a key. */
  #rests(state: KeyState, now: Milliseconds): boolean {
    return state.policy === this.#parts.owner.policy && this.#isPlain(state, now);
  }

  #newState(key: string, place: Place | undefined, now: Milliseconds): KeyState {
    const { owner } = this.#parts;
    const { policy } = owner;
    const state = new KeyState(key, policy, termsFor(policy, key), place);
    this.#fill(state, now);
    state.blockEnd = owner.blockEnd(key);
    if (isLeased(state.terms)) state.account = this.kept.open(state, now);
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
    for (let looked = 0, steps = 0; looked < CANDIDATES && steps < this.pages.extent; steps++) {
      const slot = this.#next();
      if (this.pages.at(slot) === undefined) continue;
      looked += 1;
      if (this.#lookAt(slot, now) > now) continue;
      this.#drop(slot);
      return true;
    }
    return false;
  }

  /** The slot that the hand points to, which then points to the next. */
  #next(): number {
    if (this.#hand >= this.pages.extent) this.#hand = 0;
    return this.#hand++;
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
    const { owner, time } = this.#parts;
    const now = time.now();
    if (this.#left <= 0) {
      this.#hand = 0;
      this.#left = this.pages.extent;
      this.#roundEdition = owner.edition;
      this.#soonest = Number.POSITIVE_INFINITY;
    }
    for (let i = Math.min(AT_ONCE, this.#left); i > 0; i--) {
      const slot = this.#next();
      if (this.pages.at(slot) === undefined) continue;
      const at = this.#lookAt(slot, now);
      if (at <= now) this.#drop(slot);
      else this.#soonest = Math.min(this.#soonest, at);
    }
    this.#left -= AT_ONCE;
    // It has been everywhere since, and has brought all that it saw under the policy in force.
    if (this.#left <= 0) owner.forgetBefore(this.#roundEdition);
    if (this.#left > 0) this.#lookBy(now + PAUSE_MS, now);
    else if (this.size > 0)
      this.#lookBy(now + Math.min(LONGEST_ROUND_MS, Math.max(ROUND_MS, this.#soonest - now)), now);
  }

  #drop(slot: number): void {
    const held = this.pages.at(slot) as Held;
    this.#index.delete(keyOf(held));
    this.#keys?.delete(this.#parts.owner.nameOf(keyOf(held)));
    this.kept.forget(slot);
    if (held instanceof KeyState) this.#letGo(held);
    this.pages.give(slot);
    if (this.size === 0) this.#index.clear();
  }

  #letGo(state: KeyState): void {
    this.#parts.wakes.forget(state);
    state.leaveRow();
    // Whoever still has hold of it may not see to what is another's by now.
    state.account = undefined;
  }

  /**
   * When the key in a slot may be forgotten, if nobody asks for it until then: once that is the same as keeping it, its
   * local bucket full, its wallet empty, nothing owed or awaited. Lets go of its state where that is not needed.
   */
  #lookAt(slot: number, now: Milliseconds): Milliseconds {
    const { owner } = this.#parts;
    const held = this.pages.at(slot) as Held;
    if (!(held instanceof KeyState)) {
      if (held instanceof Account) held.rest();
      const { cells, width } = this.#rowsOf(slot);
      const first = rowOf(slot) * width;
      if (cells[first + PLAIN] === owner.edition) {
        const bucket = { tokens: cells[first + TOKENS] as number, at: cells[first + AT] as number, meter: undefined };
        return droppableAt(bucket, owner.policy.terms.local, this.kept.at(slot), now);
      }
    }
    const state = this.refresh(held instanceof KeyState ? held : this.#hold(this.#stateOf(held, slot)), now);
    const { account, waiters, wakeAt } = state;
    if (state.pace && state.pace.seekers.size > 0) return now + UNUSED_MS;
    // Those who wait are looked after by then.
    if (waiters !== undefined) return Math.max(now + UNUSED_MS, wakeAt < Number.POSITIVE_INFINITY ? wakeAt : 0);
    const at = droppableAt(state, state.terms.local, account, now);
    if (at > now && this.#rests(state, now)) {
      this.pages.put(slot, restOf(state));
      this.#letGo(state);
    }
    return at;
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
    const leased = isLeased(terms);
    if (account && (!leased || account.ledger !== ledgerName(policy, terms))) {
      keeper.release(account, now);
      state.account = undefined;
    }
    if (!leased) return;
    if (state.account) keeper.reconcile(state.account);
    else state.account = this.kept.open(state, now);
  }
}
