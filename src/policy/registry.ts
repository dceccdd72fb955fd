import { InvalidPolicyError } from '../errors.js';
import type { Observer, PolicyChange } from '../telemetry/observer.js';
import type { Time } from '../time.js';
import { policyFromMessage } from './codec.js';
import { parsePolicy } from './parse-policy.js';
import type { Policy } from './policy.js';
import type { PolicyUpdate } from './policy-source.js';

/** Told of each policy that has come into force, after it has. */
export type PolicyChangeListener = (policy: Policy, previous: Policy | undefined) => void;

/** An update as a source tells it, or one made in this process (`code`). */
export type RegistryUpdate = Omit<PolicyUpdate, 'via'> & { readonly via: PolicyChange['via'] };

export interface PolicyRegistryOptions {
  /** The policies given in code. In force until an update brings a newer version; version 0 gives way to any other. */
  readonly policies: readonly Policy[];
  readonly time: Pick<Time, 'wallNow'>;
  readonly observer: Pick<Observer, 'policyChanged' | 'trouble'>;
}

/**
 * The policies in force in one limiter. Pure state: sources feed it, it does no I/O.
 *
 * For each name the highest version wins, in whatever order and however often updates arrive; so instances that have
 * seen the same updates are in the same state. What else can arrive changes nothing:
 *
 * | update                                | outcome    | error |
 * |---------------------------------------|------------|-------|
 * | lower version                         | `ignored`  | –     |
 * | same version, same content            | (not told) | –     |
 * | same version, other content           | `ignored`  | says that the version was used twice |
 * | not a valid policy                    | `invalid`  | says why |
 * | removed at the source                 | `removed`  | –     |
 */
export class PolicyRegistry {
  readonly #current = new Map<string, Policy>();
  readonly #listeners = new Set<PolicyChangeListener>();
  readonly #time: Pick<Time, 'wallNow'>;
  readonly #observer: Pick<Observer, 'policyChanged' | 'trouble'>;
  readonly #outcomes = { applied: 0, ignored: 0, invalid: 0, removed: 0 };

  constructor({ policies, time, observer }: PolicyRegistryOptions) {
    this.#time = time;
    this.#observer = observer;
    for (const policy of policies) this.#take({ name: policy.name, document: policy.document, via: 'code' }, policy);
  }

  /** How many updates ended in each way. */
  get outcomes(): Readonly<Record<PolicyChange['outcome'], number>> {
    return this.#outcomes;
  }

  get(name: string): Policy | undefined {
    return this.#current.get(name);
  }

  names(): IterableIterator<string> {
    return this.#current.keys();
  }

  /** The policies in force, in the order in which their names were first seen. */
  policies(): IterableIterator<Policy> {
    return this.#current.values();
  }

  /** Calls `listener` after each change; the answer stops that. */
  onChange(listener: PolicyChangeListener): () => void {
    // A function of its own for each call, so that a listener added twice is called twice and removed one by one.
    const own: PolicyChangeListener = (policy, previous) => listener(policy, previous);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Takes in one update. Never throws: what can't be used is reported. */
  apply(update: RegistryUpdate): void {
    const previous = this.#current.get(update.name);
    if (update.document === undefined) {
      if (previous) this.#report(update, previous.version, previous, 'removed');
      return;
    }
    // The very document of the policy in force, which nobody can have changed.
    if (update.document === previous?.document) return;
    let policy: Policy;
    try {
      policy = readUpdate(update);
    } catch (error) {
      this.#report(update, claimedVersion(update.document), previous, 'invalid', error as Error);
      return;
    }
    this.#take(update, policy);
  }

  #take(update: RegistryUpdate, policy: Policy): void {
    const previous = this.#current.get(policy.name);
    if (previous && policy.version <= previous.version) {
      this.#ignore(update, policy, previous);
      return;
    }
    this.#current.set(policy.name, policy);
    this.#report(update, policy.version, previous, 'applied');
    for (const listener of [...this.#listeners]) {
      try {
        listener(policy, previous);
      } catch (error) {
        this.#observer.trouble(error as Error);
      }
    }
  }

  #ignore(update: RegistryUpdate, policy: Policy, previous: Policy): void {
    if (policy.version < previous.version) {
      this.#report(update, policy.version, previous, 'ignored');
    } else if (meaning(policy) !== meaning(previous)) {
      const error = new InvalidPolicyError(
        `Expected version ${policy.version} to be one policy, got a second with other terms: ` +
          `publish it under a higher version. (policy "${policy.name}")`,
      );
      this.#report(update, policy.version, previous, 'ignored', error);
    }
  }

  #report(
    update: RegistryUpdate,
    version: number,
    previous: Policy | undefined,
    outcome: PolicyChange['outcome'],
    error?: Error,
  ): void {
    this.#outcomes[outcome] += 1;
    this.#observer.policyChanged({
      policy: update.name,
      version,
      previousVersion: previous?.version,
      outcome,
      via: update.via,
      // Two machines' wall clocks: a publisher ahead of us would make it negative.
      lagMs: update.publishedAt === undefined ? undefined : Math.max(0, this.#time.wallNow() - update.publishedAt),
      trace: update.trace,
      error,
    });
  }
}

/** The policy in an update. A source passes on bytes that it could not decode, and here they say why. */
function readUpdate({ name, document }: RegistryUpdate): Policy {
  const policy = parsePolicy(document instanceof Uint8Array ? policyFromMessage(document) : document);
  if (policy.name === name) return policy;
  throw new InvalidPolicyError(`Expected the policy stored as "${name}" to have that name, got "${policy.name}".`);
}

/** The version that a document claims, valid or not; 0 where it has none to show. */
function claimedVersion(document: unknown): number {
  const version = typeof document === 'object' && document !== null && 'version' in document ? document.version : 0;
  return Number.isSafeInteger(version) ? (version as number) : 0;
}

/** All that a policy decides, as text: alike for documents that differ only in how they say it. */
function meaning({ terms, overrides, patterns, lease, outage, inheritance }: Policy): string {
  const sorted = [...overrides].sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([terms, sorted, patterns, lease, outage, inheritance]);
}
