import { InvalidOptionError, show } from '../errors.js';
import type { Observer } from '../telemetry/observer.js';
import type { Time } from '../time.js';
import { parsePolicy } from './parse-policy.js';
import type { Policy, PolicyDocument } from './policy.js';
import type { PolicySource } from './policy-source.js';
import type { PolicyChangeListener, PolicyRegistry } from './registry.js';

export interface PublishOptions {
  /**
   * Publish only if this is the version now stored; 0 means that none is. Default: the version this limiter has in
   * force, so that nobody's newer policy is overwritten unseen, or the stored one where that is older (a store that
   * lost its data).
   */
  expectedVersion?: number;
}

export interface PolicyBookOptions {
  readonly registry: PolicyRegistry;
  readonly source: PolicySource;
  readonly time: Pick<Time, 'wallNow'>;
  readonly observer: Pick<Observer, 'inject'>;
}

/** A limiter's policies, to read, publish and watch: what `limiter.policies` is. */
export class PolicyBook {
  readonly #registry: PolicyRegistry;
  readonly #source: PolicySource;
  readonly #time: Pick<Time, 'wallNow'>;
  readonly #observer: Pick<Observer, 'inject'>;

  constructor({ registry, source, time, observer }: PolicyBookOptions) {
    this.#registry = registry;
    this.#source = source;
    this.#time = time;
    this.#observer = observer;
  }

  /** The documents of the policies in force here, frozen. */
  list(): readonly Readonly<PolicyDocument>[] {
    return Array.from(this.#registry.policies(), ({ document }) => document);
  }

  /** The document of the policy in force here under `name`, frozen; `undefined` where there is none. */
  get(name: string): Readonly<PolicyDocument> | undefined {
    return this.#registry.get(name)?.document;
  }

  /**
   * Stores `document` as the newest version of its policy, for every limiter that watches the same source, and puts it
   * in force here at once. A `version` in the document is replaced: by the wall clock in ms, or one more than the
   * highest version seen where that is more.
   *
   *     await limiter.policies.publish({ ...limiter.policies.get('api'), ceiling: { rate: 500, burst: 1000 } });
   *
   * @returns the policy as published, with its version.
   * @throws InvalidPolicyError where the document is not a policy. Nothing was sent.
   * @throws PolicyConflictError where the stored version is not the expected one. Nothing has changed.
   * @throws PolicySourceError where the source can't be written, or did not answer: then it may or may not have stored
   * the policy, and a watch tells.
   */
  async publish(document: PolicyDocument, { expectedVersion }: PublishOptions = {}): Promise<Policy> {
    if (expectedVersion !== undefined && !(Number.isSafeInteger(expectedVersion) && expectedVersion >= 0)) {
      throw new InvalidOptionError(
        `Expected \`expectedVersion\` to be a whole number of at least 0, got ${show(expectedVersion)}.`,
      );
    }
    const draft = parsePolicy(document);
    const known = this.#registry.get(draft.name)?.version ?? 0;
    const expected = expectedVersion ?? Math.min(known, await this.#storedVersion(draft.name));
    const version = Math.max(known + 1, expected + 1, Math.floor(this.#time.wallNow()));
    const policy = parsePolicy({ ...draft.document, version });
    await this.#source.publish(policy.document, expected, this.#observer.inject());
    this.#registry.apply({ name: policy.name, document: policy.document, via: 'code' });
    return policy;
  }

  /** Calls `listener` with the new and the previous policy after each change here; the answer stops that. */
  watch(listener: PolicyChangeListener): () => void {
    return this.#registry.onChange(listener);
  }

  async #storedVersion(name: string): Promise<number> {
    const documents = await this.#source.list();
    return documents.find((document) => document.name === name)?.version ?? 0;
  }
}
