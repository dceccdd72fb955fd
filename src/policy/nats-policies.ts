import { PolicyConflictError, PolicySourceError } from '../errors.js';
import { type Random, systemTime, type Time } from '../time.js';
import type { Milliseconds } from '../units.js';
import { policyFromMessage, policyToMessage } from './codec.js';
import { conflict } from './conflict.js';
import { type NatsConnection, type NatsKvEntry, OutgoingHeaders } from './nats-client.js';
import { NatsLink } from './nats-link.js';
import { policyHeaders } from './nats-message.js';
import { explain, isWrongLastSequence } from './nats-trouble.js';
import { NatsWatch } from './nats-watch.js';
import { parsePolicy } from './parse-policy.js';
import type { Policy, PolicyDocument } from './policy.js';
import type { PolicyListener, PolicySource } from './policy-source.js';

const DEFAULT_BUCKET = 'headgate_policies';

/** Options of `natsPolicySource`. */
export interface NatsPolicySourceOptions {
  /**
   * A connection of `nats` 2.x or `@nats-io/transport-node` 3.x, which is used and never closed; or the URL of a server,
   * or of several, comma-separated, to which the source makes a connection of its own. A user and password, or a token,
   * may stand in the URL; for anything else, connect yourself.
   *
   * A connection that is given should have `maxReconnectAttempts: -1`: both clients give up for good after ten.
   */
  nats: string | NatsConnection;
  /** The key-value bucket; created where it is missing. A–Z a–z 0–9 `_` `-`. Default `'headgate_policies'`. */
  bucket?: string;
  /** How long one request to NATS may take, in ms; positive. Default 2,000. */
  timeoutMs?: Milliseconds;
  /** All policies are read again after about this time, even where nothing seems wrong; positive. Default 300,000. */
  rereadMs?: Milliseconds;
  /**
   * What `watch` does while no server is in reach. `false`, the default: it resolves, the policies given in code are in
   * force, the trouble is reported, and trying goes on. `true`: it waits.
   */
  waitOnFirstConnect?: boolean;
  time?: Pick<Time, 'after' | 'wallNow'>;
  random?: Random;
}

/**
 * Policies in a JetStream key-value bucket: key = policy name, value = the document as JSON. The bucket is the truth,
 * and watched; the same bytes also go out at once on the subject `headgate.policy.<name>` (in a bucket of another name:
 * `headgate.<bucket>.<name>`), as a hint for watches that are behind.
 */
export class NatsPolicies implements PolicySource {
  readonly #options: NatsPolicySourceOptions & { readonly rereadMs: Milliseconds };
  readonly #bucket: string;
  readonly #subject: string;
  readonly #time: Pick<Time, 'after' | 'wallNow'>;
  readonly #link: NatsLink;
  #watch: NatsWatch | undefined;

  /** @param options checked */
  constructor(options: NatsPolicySourceOptions) {
    const { nats, bucket = DEFAULT_BUCKET, timeoutMs = 2_000, rereadMs = 300_000, time = systemTime } = options;
    this.#options = { ...options, rereadMs };
    this.#bucket = bucket;
    // Hints of one bucket must not reach those who watch another on the same servers.
    this.#subject = bucket === DEFAULT_BUCKET ? 'headgate.policy' : `headgate.${bucket}`;
    this.#time = time;
    this.#link = new NatsLink(nats, bucket, timeoutMs);
  }

  async watch(listener: PolicyListener): Promise<void> {
    if (this.#watch) throw new PolicySourceError('Expected one limiter for each NATS policy source, got a second.');
    this.#watch = new NatsWatch({
      link: this.#link,
      bucket: this.#bucket,
      subject: this.#subject,
      listener,
      rereadMs: this.#options.rereadMs,
      waitOnFirstConnect: this.#options.waitOnFirstConnect ?? false,
      time: this.#time,
      random: this.#options.random ?? Math.random,
    });
    await this.#watch.start();
  }

  async list(): Promise<readonly PolicyDocument[]> {
    return this.#explained('list policies', async () => {
      const bucket = await this.#link.bucket();
      const policies = (await bucket.readAll()).map(storedPolicy);
      return policies.flatMap((policy) => (policy ? [policy.document] : []));
    });
  }

  async publish(document: PolicyDocument, expected: number, trace?: Readonly<Record<string, string>>): Promise<void> {
    const policy = parsePolicy(document);
    const message = policyToMessage(policy.document);
    const headers = policyHeaders(this.#time.wallNow(), trace);
    await this.#explained(`publish policy "${policy.name}"`, async () => {
      await this.#store(policy.name, message, expected, headers);
      const connection = await this.#link.connection();
      // Only now: whoever takes a hint for news must find it in the bucket too.
      connection.publish(`${this.#subject}.${policy.name}`, message, { headers: new OutgoingHeaders(headers) });
    });
  }

  async close(): Promise<void> {
    this.#watch?.stop();
    await this.#link.close();
  }

  /** Compares document versions and sets by revision: revisions start again at 1 when the server loses its data. */
  async #store(
    name: string,
    message: Uint8Array,
    expected: number,
    headers: Readonly<Record<string, string>>,
  ): Promise<void> {
    const bucket = await this.#link.bucket();
    const entry = await bucket.get(name);
    // Something that is no policy may be replaced like nothing: that is how it is repaired.
    const stored = (entry && storedPolicy(entry)?.version) ?? 0;
    if (stored !== expected) throw conflict(name, expected, stored);
    try {
      await bucket.put(name, message, entry?.revision ?? 0, headers);
    } catch (cause) {
      if (!isWrongLastSequence(cause)) throw cause;
      throw new PolicyConflictError(
        `Expected nobody else to publish policy "${name}" at the same time: read it again and retry.`,
        { cause },
      );
    }
  }

  async #explained<T>(doing: string, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (cause) {
      throw explain(cause, doing, this.#bucket).error;
    }
  }
}

/** The policy in an entry; `undefined` where it was removed or is none. */
function storedPolicy(entry: NatsKvEntry): Policy | undefined {
  if (entry.operation !== 'PUT') return undefined;
  try {
    const policy = parsePolicy(policyFromMessage(entry.value));
    return policy.name === entry.key ? policy : undefined;
  } catch {
    return undefined;
  }
}
