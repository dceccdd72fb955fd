import type { Block, BlockOptions } from '../mark/block.js';
import type { Policy } from '../policy/policy.js';
import type { Seat } from '../seat/seat.js';
import type { Milliseconds, Tokens } from '../units.js';
import type { AcquireOptions, EnterOptions } from './acquire-options.js';
import type { Decision } from './decision.js';
import type { KeyState } from './key-state.js';
import type { KeyTable } from './key-table.js';
import { PLAINLY, type PlainPath } from './plain-path.js';
import type { KeyFinder, Teller } from './teller.js';

/** What a handle needs of the policy's limiter that made it. */
export interface HandledLimit {
  readonly policy: Policy;
  readonly keys: KeyTable;
  readonly teller: Teller;
  enter(key: string, options?: EnterOptions): Promise<Seat>;
  block(key: string, forMs: Milliseconds | readonly Milliseconds[], options?: BlockOptions): Promise<Block>;
  unblock(key: string): Promise<void>;
  reset(key: string): Promise<void>;
}

// Here, so that they are constants to the compiler, which those of another module are not.
const { allowed: ALLOWED, unsure: UNSURE } = PLAINLY;

/**
 * One key of one policy, for callers that ask for it again and again: the same verbs as a {@link PolicyLimiter} has, on
 * the same buckets, without looking the key up. It keeps nothing alive that would be dropped without it, holds for as
 * long as the limiter lives, and follows whatever is published. Functions such as `peek` take it in place of both.
 */
export class KeyHandle implements KeyFinder {
  readonly key: string;
  /** @internal */
  readonly teller: Teller;
  readonly #limit: HandledLimit;
  readonly #keys: KeyTable;
  readonly #plain: PlainPath;
  #state: KeyState | undefined;

  /** @internal Made by `PolicyLimiter.key`. */
  constructor(key: string, limit: HandledLimit) {
    this.key = key;
    this.teller = limit.teller;
    this.#plain = limit.teller.plain;
    this.#limit = limit;
    this.#keys = limit.keys;
  }

  /** The policy in force now. */
  get policy(): Policy {
    return this.#limit.policy;
  }

  /** As `PolicyLimiter.tryAcquire` for this key. */
  tryAcquire(cost: Tokens = 1): boolean {
    const micro = this.teller.micro(this.key, cost);
    const now = this.#plain.now();
    const slot = this.slotOf();
    const plainly = slot === undefined ? UNSURE : this.#plain.settle(slot, cost, micro);
    if (plainly === ALLOWED) return true;
    if (plainly !== UNSURE && this.#plain.denies(plainly, slot as number, micro)) return false;
    return this.teller.tryAcquire(this.find(now), cost, micro, now);
  }

  /** As `PolicyLimiter.decide` for this key. */
  decide(cost: Tokens = 1): Decision {
    return this.teller.decide(this.key, cost, this);
  }

  /** As `PolicyLimiter.acquire` for this key. */
  acquire(options?: AcquireOptions): Promise<Decision> {
    return this.teller.acquire(this.key, options, this);
  }

  /** As `PolicyLimiter.enter` for this key. */
  enter(options?: EnterOptions): Promise<Seat> {
    return this.#limit.enter(this.key, options);
  }

  /** As `PolicyLimiter.block` for this key. */
  block(forMs: Milliseconds | readonly Milliseconds[], options?: BlockOptions): Promise<Block> {
    return this.#limit.block(this.key, forMs, options);
  }

  /** As `PolicyLimiter.unblock` for this key. */
  unblock(): Promise<void> {
    return this.#limit.unblock(this.key);
  }

  /** As `PolicyLimiter.reset` for this key. */
  reset(): Promise<void> {
    return this.#limit.reset(this.key);
  }

  /** @internal Where the key lay at the last call, and still does. */
  slotOf(): number | undefined {
    const state = this.#state;
    return state?.kept ? state.slot : undefined;
  }

  /** @internal */
  open(_key: string, _slot: number | undefined, now: Milliseconds): KeyState {
    return this.find(now);
  }

  /** @internal The state the key has now: that of the last call, unless it was dropped since. */
  find(now: Milliseconds): KeyState {
    const state = this.#state;
    this.#state = state?.kept ? this.#keys.refresh(state, now) : this.#keys.find(this.key, now);
    return this.#state;
  }
}
