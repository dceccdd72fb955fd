/**
 * What headgate uses of a NATS client: alike in `nats` 2.x and `@nats-io/transport-node` 3.x, so a connection of either
 * fits. The one thing in which they differ, how to get at key-value buckets, is in `nats-bucket.ts`.
 */
export interface NatsConnection {
  publish(subject: string, payload?: Uint8Array, options?: { headers?: NatsHeaders }): void;
  subscribe(
    subject: string,
    options?: { callback?: (error: Error | null, message: NatsMessage) => void },
  ): NatsSubscription;
  /** Resolves after a round trip: the server has acted on all that was sent before. */
  flush(): Promise<void>;
  /** What happens to the connection: `disconnect`, `reconnect`, …; ends with the connection. */
  status(): AsyncIterable<NatsStatus>;
  /** Resolves when the connection is closed for good. */
  // biome-ignore lint/suspicious/noConfusingVoidType: as the clients declare it
  closed(): Promise<void | Error>;
  close(): Promise<void>;
  isClosed(): boolean;
}

export interface NatsStatus {
  readonly type: string;
}

export interface NatsSubscription {
  unsubscribe(): void;
}

export interface NatsMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers?: NatsHeaders;
}

/** Names are case-sensitive; `get` answers the empty string for a header that is not there. */
export interface NatsHeaders {
  get(name: string): string;
  keys(): Iterable<string>;
}

/** One value of a key in a bucket. */
export interface NatsKvEntry {
  readonly key: string;
  readonly value: Uint8Array;
  /** Sequence in the bucket's stream; starts again at 1 when the server loses its data. */
  readonly revision: number;
  /** The server's wall clock when it stored the value. */
  readonly created: Date;
  readonly operation: 'PUT' | 'DEL' | 'PURGE';
  /** How many values were still to come when this one was sent. */
  readonly delta?: number;
}

/** Values that arrive until it is stopped, by us or by the client. */
export interface NatsIterator<T> extends AsyncIterable<T> {
  stop(): void;
}

export interface NatsKv {
  get(key: string): Promise<NatsKvEntry | null>;
  status(): Promise<{ readonly values: number }>;
  /** The newest value of each key, then what is stored from now on; with `updates`, only that. */
  watch(options?: { include?: 'updates' }): Promise<NatsIterator<NatsKvEntry>>;
}

export interface NatsJetStream {
  publish(subject: string, payload?: Uint8Array, options?: { headers?: NatsHeaders }): Promise<unknown>;
}

/** The text before every header block on the wire. */
const HEADER_LINE = 'NATS/1.0';
const HEADER_NAME = /^[\w-]+$/;
const HEADER_VALUE = /^[\x20-\x7e]*$/;

/**
 * Headers to send. Both clients only ask outgoing headers to encode themselves, so ours need no client to make them.
 * An entry that can't be a header is left out: trace context is never worth failing a publish.
 */
export class OutgoingHeaders implements NatsHeaders {
  readonly #entries: ReadonlyMap<string, string>;

  constructor(entries: Readonly<Record<string, string>>) {
    this.#entries = new Map(
      Object.entries(entries).filter(([name, value]) => HEADER_NAME.test(name) && HEADER_VALUE.test(value)),
    );
  }

  get(name: string): string {
    return this.#entries.get(name) ?? '';
  }

  keys(): Iterable<string> {
    return this.#entries.keys();
  }

  encode(): Uint8Array {
    const lines = Array.from(this.#entries, ([name, value]) => `${name}: ${value}\r\n`);
    return new TextEncoder().encode(`${HEADER_LINE}\r\n${lines.join('')}\r\n`);
  }
}
