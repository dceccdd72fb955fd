import type { Milliseconds, Tokens } from '../units.js';
import { type AcquireOptions, checkAcquireOptions } from './acquire-options.js';
import type { Decision } from './decision.js';
import type { KeyState } from './key-state.js';
import type { KeyTable } from './key-table.js';
import type { Teller } from './teller.js';

/**
 * One key of one policy, for callers that ask for it again and again: the same verbs as a {@link PolicyLimiter} has, on
 * the same buckets, without looking the key up. It keeps nothing alive that would be dropped without it, holds for as
 * long as the limiter lives, and follows whatever is published.
 */
export class KeyHandle {
  readonly key: string;
  readonly #keys: KeyTable;
  readonly #teller: Teller;
  #state: KeyState | undefined;

  /** @internal Made by `PolicyLimiter.key`. */
  constructor(key: string, keys: KeyTable, teller: Teller) {
    this.key = key;
    this.#keys = keys;
    this.#teller = teller;
  }

  /** As `PolicyLimiter.tryAcquire` for this key. */
  tryAcquire(cost: Tokens = 1): boolean {
    const micro = this.#teller.micro(this.key, cost);
    const now = this.#teller.now();
    const state = this.#state;
    if (state?.kept) {
      const { plain } = this.#teller;
      if (plain.passes(state.cells, state.first, cost, micro, now)) return true;
      if (plain.denies(state.cells, state.first, cost, micro, now)) return false;
    }
    return this.#teller.tryAcquire(this.#find(now), cost, micro, now);
  }

  /** As `PolicyLimiter.decide` for this key. */
  decide(cost: Tokens = 1): Decision {
    const micro = this.#teller.micro(this.key, cost);
    const now = this.#teller.now();
    return this.#teller.decide(this.#find(now), cost, micro, now);
  }

  /** As `PolicyLimiter.acquire` for this key. */
  acquire(options?: AcquireOptions): Promise<Decision> {
    try {
      const checked = checkAcquireOptions(options);
      const micro = this.#teller.micro(this.key, checked.cost);
      if (checked.signal?.aborted) throw checked.signal.reason;
      const now = this.#teller.now();
      return this.#teller.acquire(this.#find(now), micro, checked, now);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** The state the key has now: that of the last call, unless it was dropped since. */
  #find(now: Milliseconds): KeyState {
    const state = this.#state;
    this.#state = state?.kept ? this.#keys.refresh(state, now) : this.#keys.find(this.key, now);
    return this.#state;
  }
}
