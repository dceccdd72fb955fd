import { ClosedError } from '../errors.js';
import type { Milliseconds } from '../units.js';
import { MarkedKey } from './marked-key.js';

/** A policy whose keys are marked. */
export interface MarkedPolicy {
  /** Told that a key has been blocked, or no longer is; `reset`: and is to be as if it had never been asked for. */
  marked(key: string, reset: boolean): void;
}

/**
 * Which keys are known to be blocked, or were just now. What is said here holds from then on; the desk, which most
 * limiters never load, says it to the fleet, and keeps what it hears of others here.
 */
export class MarkedKeys {
  readonly #ofPolicy = new Map<string, Map<string, MarkedKey>>();
  readonly #policyOf: (name: string) => MarkedPolicy | undefined;
  closed = false;

  constructor(policyOf: (name: string) => MarkedPolicy | undefined) {
    this.#policyOf = policyOf;
  }

  /** Those of a policy, by name: the same map for as long as this lives. */
  of(policy: string): Map<string, MarkedKey> {
    let keys = this.#ofPolicy.get(policy);
    if (!keys) {
      keys = new Map();
      this.#ofPolicy.set(policy, keys);
    }
    return keys;
  }

  /** How many of a policy are blocked. */
  blocked(policy: string): number {
    let blocked = 0;
    for (const { end } of this.of(policy).values()) if (end > Number.NEGATIVE_INFINITY) blocked += 1;
    return blocked;
  }

  *all(): Iterable<MarkedKey> {
    for (const keys of this.#ofPolicy.values()) yield* keys.values();
  }

  /** @throws ClosedError */
  open(policy: string, key: string): MarkedKey {
    if (this.closed) throw new ClosedError();
    const keys = this.of(policy);
    let marked = keys.get(key);
    if (!marked) {
      marked = new MarkedKey(policy, key);
      keys.set(key, marked);
    }
    return marked;
  }

  /** Puts in force here what is about to be said to the fleet: the desk must be told to, whatever becomes of that. */
  hold(marked: MarkedKey, end: Milliseconds, reset = false): void {
    marked.end = end;
    marked.calls += 1;
    this.tell(marked, reset);
  }

  tell({ policy, key }: MarkedKey, reset: boolean): void {
    this.#policyOf(policy)?.marked(key, reset);
  }
}
