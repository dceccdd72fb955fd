import { PolicySourceError } from '../errors.js';
import type { Milliseconds } from '../units.js';
import { PolicyBucket } from './nats-bucket.js';
import type { NatsConnection } from './nats-client.js';
import { connectNats } from './nats-connect.js';
import { GivenConnectionClosed } from './nats-trouble.js';

/** The way to the bucket: a connection that was given and is only used, or one that is made from a URL and owned. */
export class NatsLink {
  readonly #nats: string | NatsConnection;
  readonly #bucket: string;
  readonly #timeoutMs: Milliseconds;
  #own: Promise<NatsConnection> | undefined;
  #closed = false;

  constructor(nats: string | NatsConnection, bucket: string, timeoutMs: Milliseconds) {
    this.#nats = nats;
    this.#bucket = bucket;
    this.#timeoutMs = timeoutMs;
  }

  /** The connection; made at the first call, and again where our own has been closed. */
  async connection(): Promise<NatsConnection> {
    if (this.#closed) throw new PolicySourceError('Expected an open policy source, got one that is closed.');
    if (typeof this.#nats !== 'string') {
      if (this.#nats.isClosed()) throw new GivenConnectionClosed();
      return this.#nats;
    }
    this.#own ??= this.#connect(this.#nats);
    return this.#own;
  }

  /** The bucket as it is now on the server; created where it is missing. */
  async bucket(): Promise<PolicyBucket> {
    return PolicyBucket.open(await this.connection(), this.#bucket, this.#timeoutMs);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const connection = await this.#own?.catch(() => undefined);
    await connection?.close();
  }

  async #connect(url: string): Promise<NatsConnection> {
    try {
      const connection = await connectNats(url, this.#timeoutMs);
      const forget = () => {
        this.#own = undefined;
      };
      connection.closed().then(forget, forget);
      return connection;
    } catch (error) {
      this.#own = undefined;
      throw error;
    }
  }
}
