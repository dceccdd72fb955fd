import type { Milliseconds } from '../units.js';
import {
  type NatsConnection,
  type NatsHeaders,
  type NatsIterator,
  type NatsJetStream,
  type NatsKv,
  type NatsKvEntry,
  OutgoingHeaders,
} from './nats-client.js';
import { importPeer } from './nats-connect.js';

/** Header by which JetStream compares before it sets; `0`: the key has no value yet. */
const EXPECTED_REVISION = 'Nats-Expected-Last-Subject-Sequence';

/** A key-value bucket of policies, through either generation of the client. */
export class PolicyBucket {
  readonly #name: string;
  readonly #kv: NatsKv;
  readonly #jetStream: NatsJetStream;
  readonly #timeoutMs: Milliseconds;

  private constructor(name: string, kv: NatsKv, jetStream: NatsJetStream, timeoutMs: Milliseconds) {
    this.#name = name;
    this.#kv = kv;
    this.#jetStream = jetStream;
    this.#timeoutMs = timeoutMs;
  }

  /** Opens the bucket, and creates it where it is missing. Always asks the server, which may have lost it. */
  static async open(connection: NatsConnection, name: string, timeoutMs: Milliseconds): Promise<PolicyBucket> {
    if (isFirstGeneration(connection)) {
      const jetStream = connection.jetstream({ timeout: timeoutMs });
      return new PolicyBucket(name, await jetStream.views.kv(name), jetStream, timeoutMs);
    }
    const { jetstream } = await importPeer<JetStreamModule>('@nats-io/jetstream');
    const { Kvm } = await importPeer<KvModule>('@nats-io/kv');
    const jetStream = jetstream(connection, { timeout: timeoutMs });
    return new PolicyBucket(name, await new Kvm(jetStream).create(name), jetStream, timeoutMs);
  }

  /** The value now stored under `key`, or the marker of its removal. */
  get(key: string): Promise<NatsKvEntry | null> {
    return this.#kv.get(key);
  }

  /** The newest value of each key. Not of those removed. */
  async readAll(): Promise<readonly NatsKvEntry[]> {
    // A watch on an empty bucket would say nothing at all, not even that there is nothing.
    if ((await this.#kv.status()).values === 0) return [];
    const values = await this.#kv.watch();
    let isLate = false;
    const deadline = setTimeout(() => {
      isLate = true;
      values.stop();
    }, this.#timeoutMs);
    const newest = new Map<string, NatsKvEntry>();
    try {
      for await (const entry of values) {
        newest.set(entry.key, entry);
        if (entry.delta === 0) break;
      }
    } finally {
      clearTimeout(deadline);
      values.stop();
    }
    if (isLate) throw new Error(`no answer within ${this.#timeoutMs} ms`);
    return [...newest.values()].filter(({ operation }) => operation === 'PUT');
  }

  /** Values stored from now on, until stopped. */
  watch(): Promise<NatsIterator<NatsKvEntry>> {
    return this.#kv.watch({ include: 'updates' });
  }

  /** Stores `value` if `revision` is still the last one of `key` (0: none). The headers are stored with it. */
  async put(
    key: string,
    value: Uint8Array,
    revision: number,
    headers: Readonly<Record<string, string>>,
  ): Promise<void> {
    // What the client's own put does, but that takes no headers.
    await this.#jetStream.publish(`$KV.${this.#name}.${key}`, value, {
      headers: new OutgoingHeaders({ ...headers, [EXPECTED_REVISION]: String(revision) }),
    });
  }
}

/**
 * The headers an entry was stored with. Neither client offers them, but both keep the message they came in; where a
 * later one does not, only the trace context is lost.
 */
export function headersOf(entry: NatsKvEntry): NatsHeaders | undefined {
  return (entry as { sm?: { headers?: NatsHeaders } }).sm?.headers;
}

/** `nats` 2.x, whose connections make their own JetStream clients. */
interface FirstGeneration extends NatsConnection {
  jetstream(options: { timeout: Milliseconds }): NatsJetStream & { views: { kv(name: string): Promise<NatsKv> } };
}

function isFirstGeneration(connection: NatsConnection): connection is FirstGeneration {
  return 'jetstream' in connection && typeof connection.jetstream === 'function';
}

interface JetStreamModule {
  jetstream(connection: NatsConnection, options: { timeout: Milliseconds }): NatsJetStream;
}

interface KvModule {
  Kvm: new (jetStream: NatsJetStream) => { create(name: string): Promise<NatsKv> };
}
