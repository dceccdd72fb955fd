import { PolicySourceError } from '../errors.js';
import { conflict } from './conflict.js';
import { parsePolicies, parsePolicy } from './parse-policy.js';
import type { Policy, PolicyDocument } from './policy.js';
import type { PolicyListener, PolicySource } from './policy-source.js';

/**
 * Policies in this process's memory that can be published: for tests, and for several limiters in one process.
 *
 * Limiters may share one: each `watch` is ended by one `close`, and the last one closes the source.
 *
 * @param initial what is stored at first. Default: nothing.
 * @throws InvalidPolicyError where a document is not a policy, or a name is there twice.
 */
export function memoryPolicySource(initial: readonly PolicyDocument[] = []): PolicySource {
  return new MemoryPolicySource(parsePolicies(initial));
}

class MemoryPolicySource implements PolicySource {
  readonly #stored: Map<string, Policy>;
  readonly #listeners: PolicyListener[] = [];
  #watching = 0;
  #closed = false;

  constructor(policies: readonly Policy[]) {
    this.#stored = new Map(policies.map((policy) => [policy.name, policy]));
  }

  async watch(listener: PolicyListener): Promise<void> {
    this.#checkOpen();
    this.#listeners.push(listener);
    this.#watching += 1;
    for (const { name, document } of this.#stored.values()) listener.update({ name, document, via: 'snapshot' });
  }

  async list(): Promise<readonly PolicyDocument[]> {
    this.#checkOpen();
    return Array.from(this.#stored.values(), ({ document }) => document);
  }

  async publish(document: PolicyDocument, expected: number, trace?: Readonly<Record<string, string>>): Promise<void> {
    this.#checkOpen();
    const policy = parsePolicy(document);
    const stored = this.#stored.get(policy.name)?.version ?? 0;
    if (stored !== expected) throw conflict(policy.name, expected, stored);
    this.#stored.set(policy.name, policy);
    const update = { name: policy.name, document: policy.document, via: 'watch', ...(trace && { trace }) } as const;
    for (const listener of this.#listeners) listener.update(update);
  }

  async close(): Promise<void> {
    this.#watching -= 1;
    if (this.#watching > 0) return;
    this.#closed = true;
    this.#listeners.length = 0;
  }

  #checkOpen(): void {
    if (this.#closed) throw new PolicySourceError('Expected an open policy source, got one that is closed.');
  }
}
