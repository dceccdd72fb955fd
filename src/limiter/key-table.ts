import { levelAt } from '../algorithm/token-bucket.js';
import { InvalidKeyError, show } from '../errors.js';
import { ledgerName } from '../lease/account.js';
import type { Keeper } from '../lease/keeper.js';
import type { WakeQueue } from '../lease/wake-queue.js';
import { type Policy, termsFor } from '../policy/policy.js';
import type { Milliseconds } from '../units.js';
import { KeyState } from './key-state.js';
import type { PolicyState } from './policy-state.js';

/** Longest key, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 512;
/** The key of the bucket that all keys share for which there is no room; no caller's key is empty. */
const OVERFLOW_KEY = '';
/** How many of the oldest keys are looked at for one that can be dropped when a new one needs its place. */
const CANDIDATES = 8;
/** A key unused for this long is dropped, if its bucket is full and its wallet empty. */
const UNUSED_MS: Milliseconds = 1_000;

/** The keys of one policy: at most `maxKeys` besides those with an override, and one overflow bucket for the rest. */
export class KeyTable {
  readonly #states = new Map<string, KeyState>();
  readonly #owner: PolicyState;
  readonly #keeper: Keeper;
  readonly #wakes: WakeQueue<KeyState>;
  readonly #maxKeys: number;
  #overflow: KeyState | undefined;

  constructor(owner: PolicyState, keeper: Keeper, wakes: WakeQueue<KeyState>, maxKeys: number) {
    this.#owner = owner;
    this.#keeper = keeper;
    this.#wakes = wakes;
    this.#maxKeys = maxKeys;
  }

  get size(): number {
    return this.#states.size;
  }

  *states(): Iterable<KeyState> {
    yield* this.#states.values();
    if (this.#overflow) yield this.#overflow;
  }

  /** The state of `key`, shaped by the policy in force. Checks a key only where it is new: the others have been. */
  find(key: string, now: Milliseconds): KeyState {
    const state = this.#states.get(key) ?? this.#admit(key, now);
    if (state.policy !== this.#owner.policy) this.#reshape(state, now);
    return state;
  }

  /** The state of an account's key, if it is still here. */
  peek(key: string): KeyState | undefined {
    return key === OVERFLOW_KEY ? this.#overflow : this.#states.get(key);
  }

  /** Brings a state under the policy in force now, without a call for it. */
  refresh(state: KeyState, now: Milliseconds): void {
    if (state.policy !== this.#owner.policy) this.#reshape(state, now);
  }

  /** Woken because it may have gone unused: drops it, or looks again later. */
  review(state: KeyState, now: Milliseconds): void {
    if (!state.kept) return;
    if (this.#droppable(state, now)) this.#drop(state);
    else this.#reviewLater(state, now);
  }

  #admit(key: string, now: Milliseconds): KeyState {
    checkKey(key);
    // Whoever has terms of its own keeps them: there are only as many as the policy names.
    const named = this.#owner.policy.overrides.has(key);
    if (this.#states.size >= this.#maxKeys && !named && !this.#makeRoom(now)) {
      this.#overflow ??= this.#open(OVERFLOW_KEY, true, now);
      return this.#overflow;
    }
    const state = this.#open(key, false, now);
    this.#states.set(key, state);
    this.#reviewLater(state, now);
    return state;
  }

  #open(key: string, overflow: boolean, now: Milliseconds): KeyState {
    const { policy } = this.#owner;
    const state = new KeyState(key, overflow, policy, termsFor(policy, key), now);
    if (state.terms.ceiling) state.account = this.#keeper.open(key, this.#owner);
    return state;
  }

  #makeRoom(now: Milliseconds): boolean {
    let looked = 0;
    for (const [key, state] of this.#states) {
      if (this.#droppable(state, now)) {
        this.#drop(state);
        return true;
      }
      if (++looked >= CANDIDATES) break;
      // Looked at and needed: to the back of the line, so that the next ones are looked at next time.
      this.#states.delete(key);
      this.#states.set(key, state);
    }
    return false;
  }

  #drop(state: KeyState): void {
    this.#states.delete(state.key);
    state.kept = false;
    this.#wakes.forget(state);
    if (state.account) this.#keeper.forget(state.account);
  }

  /** Whether forgetting a key is the same as keeping it: local bucket full, wallet empty, nothing owed or awaited. */
  #droppable(state: KeyState, now: Milliseconds): boolean {
    if (state.waiters !== undefined) return false;
    const { local } = state.terms;
    if (local && levelAt(state, local, now) < local.burst) return false;
    const { account } = state;
    if (!account) return true;
    if (account.attempted > 0) account.measure(now);
    return account.idle && now >= account.blockedUntil && now - account.activeAt >= UNUSED_MS;
  }

  #reviewLater(state: KeyState, now: Milliseconds): void {
    const { local } = state.terms;
    const untilFull = local ? (local.burst - levelAt(state, local, now)) / local.ratePerMs : 0;
    this.#wakes.wakeBy(state, now + Math.max(UNUSED_MS, untilFull));
  }

  /** Brings a state of an older policy under the one in force: local tokens are inherited, the account is re-termed. */
  #reshape(state: KeyState, now: Milliseconds): void {
    const { policy, since } = this.#owner;
    const from = state.terms.local;
    const terms = termsFor(policy, state.key);
    const to = terms.local;
    if (to) {
      // The older terms held until the newer came into force, whenever the key is asked for again.
      const held = from ? levelAt(state, from, since) : to.burst;
      state.tokens = Math.min(to.burst, inherited(policy, held, from?.burst ?? to.burst, to.burst));
      state.at = Math.max(state.at, since);
    }
    state.policy = policy;
    state.terms = terms;
    const { account } = state;
    if (account && (!terms.ceiling || account.ledger !== ledgerName(policy, terms))) {
      this.#keeper.release(account, now);
      state.account = undefined;
    }
    if (!terms.ceiling) return;
    if (state.account) this.#keeper.reconcile(state.account);
    else state.account = this.#keeper.open(state.key, this.#owner);
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
