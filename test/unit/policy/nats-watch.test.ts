import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NatsConnection, NatsKvEntry, NatsMessage } from '../../../src/policy/nats-client.js';
import { natsPolicySource } from '../../../src/policy/nats-source.js';
import type { PolicySource } from '../../../src/policy/policy-source.js';
import { policy } from '../../contract/policy-source.js';
import { RecordingListener } from '../../contract/policy-source-listener.js';
import { eventually } from '../../support/eventually.js';

/** Values pushed by the test, until somebody stops it; as the iterators of both NATS clients. */
class Feed<T> implements AsyncIterable<T> {
  readonly #values: T[] = [];
  #wake = (): void => {};
  isStopped = false;

  push(value: T): void {
    this.#values.push(value);
    this.#wake();
  }

  stop(): void {
    this.isStopped = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    while (true) {
      const value = this.#values.shift();
      if (value !== undefined) yield value;
      else if (this.isStopped) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** A server with one bucket, as a connection of the first generation shows it, that fails on command. */
class FakeNats {
  readonly stored = new Map<string, NatsKvEntry>();
  readonly watches: Feed<NatsKvEntry>[] = [];
  readonly statuses: Feed<{ type: string }>[] = [];
  readonly hintListeners: ((error: Error | null, message: NatsMessage) => void)[] = [];
  /** What happened, in order. */
  readonly log: string[] = [];
  failure: Error | undefined;

  store(name: string, version: number): NatsKvEntry {
    const value = new TextEncoder().encode(JSON.stringify(policy(name, version)));
    const entry = { key: name, value, revision: version, created: new Date(0), operation: 'PUT', delta: 0 } as const;
    this.stored.set(name, entry);
    return entry;
  }

  get connection(): NatsConnection {
    const kv = {
      status: async () => ({ values: this.stored.size }),
      get: async (key: string) => this.stored.get(key) ?? null,
      watch: async ({ include }: { include?: 'updates' } = {}) => {
        this.log.push(include === 'updates' ? 'watch' : 'read');
        const feed = new Feed<NatsKvEntry>();
        if (include === 'updates') this.watches.push(feed);
        else for (const entry of this.stored.values()) feed.push(entry);
        return feed;
      },
    };
    const open = async () => {
      if (this.failure) throw this.failure;
      return kv;
    };
    const connection = {
      publish() {},
      subscribe: (_: string, options: { callback: (error: Error | null, message: NatsMessage) => void }) => {
        this.log.push('subscribe');
        this.hintListeners.push(options.callback);
        return { unsubscribe: () => this.log.push('unsubscribe') };
      },
      flush: async () => {
        this.log.push('flush');
      },
      status: () => {
        const feed = new Feed<{ type: string }>();
        this.statuses.push(feed);
        return feed;
      },
      closed: () => new Promise<void>(() => {}),
      close: async () => {},
      isClosed: () => false,
      jetstream: () => ({ publish: async () => {}, views: { kv: open } }),
    };
    return connection as NatsConnection;
  }
}

let nats: FakeNats;
let listener: RecordingListener;
let source: PolicySource;
/** The pauses that were asked for, in ms; each is over at once unless it is a regular re-read. */
let pauses: number[];

beforeEach(() => {
  nats = new FakeNats();
  listener = new RecordingListener();
  pauses = [];
  source = natsPolicySource({
    nats: nats.connection,
    rereadMs: 1e9,
    random: () => 0.5,
    time: {
      wallNow: () => 0,
      after(delayMs, task) {
        if (delayMs === 1e9) return { cancel() {} };
        pauses.push(delayMs);
        const immediate = setImmediate(task);
        return { cancel: () => clearImmediate(immediate) };
      },
    },
  });
});
afterEach(() => source.close());

describe('A NATS watch', () => {
  it('listens before it reads, so that nothing falls in between', async () => {
    nats.store('api', 1);
    await source.watch(listener);
    expect(nats.log).toEqual(['subscribe', 'watch', 'flush', 'read']);
    expect(listener.updates).toMatchObject([{ name: 'api', via: 'snapshot' }]);
  });

  it('starts again when its iterator ends, and reads what it has missed', async () => {
    nats.store('api', 1);
    await source.watch(listener);
    nats.store('api', 2);
    nats.watches[0]?.stop();
    await eventually(() => listener.version('api') === 2, 'it was read again');
    expect(nats.watches).toHaveLength(2);
    expect(nats.log.filter((each) => each === 'unsubscribe')).toHaveLength(1);
    nats.watches[1]?.push(nats.store('api', 3));
    await eventually(() => listener.version('api') === 3, 'the new watch works');
    expect(listener.troubles.map(({ message }) => message)).toEqual([
      'Could not watch policies over NATS: the watch on the bucket ended.',
      'NATS is back: all policies have been read again.',
    ]);
  });

  it('starts again when its connection was lost and is back', async () => {
    await source.watch(listener);
    nats.statuses[0]?.push({ type: 'disconnect' });
    nats.statuses[0]?.push({ type: 'reconnecting' });
    nats.store('api', 1);
    nats.statuses[0]?.push({ type: 'reconnect' });
    await eventually(() => listener.version('api') === 1, 'it was read again');
    expect(listener.newest('api')?.via).toBe('watch');
    expect(nats.watches[0]?.isStopped).toBe(true);
    expect(nats.statuses[0]?.isStopped).toBe(true);
  });

  it('tries ever more slowly, up to ten seconds, and reports a long trouble once', async () => {
    nats.failure = new Error('no answer');
    await source.watch(listener);
    await eventually(() => pauses.length >= 9, 'it tried and tried');
    nats.failure = undefined;
    await eventually(() => nats.watches.length === 1, 'it got through');
    expect(pauses.slice(0, 9)).toEqual([75, 150, 300, 600, 1_200, 2_400, 4_800, 7_500, 7_500]);
    expect(listener.troubles.map(({ message }) => message)).toEqual([
      'Could not watch policies over NATS: no answer.',
      'NATS is back: all policies have been read again.',
    ]);
    nats.watches[0]?.stop();
    await eventually(() => nats.watches.length === 2, 'it started again');
    expect(pauses.at(-1)).toBe(75);
  });

  it('goes on trying when what can’t pass befalls it later', async () => {
    await source.watch(listener);
    nats.failure = Object.assign(new Error('503'), { code: '503' });
    nats.watches[0]?.stop();
    await eventually(() => listener.heard('Expected a NATS server with JetStream'), 'it was reported');
    nats.failure = undefined;
    nats.store('api', 1);
    await eventually(() => listener.version('api') === 1, 'it got through');
  });

  it('takes whatever comes first, a hint or the stored value', async () => {
    await source.watch(listener);
    const hint = (version: number) =>
      nats.hintListeners[0]?.(null, { subject: 'headgate.policy.api', data: nats.store('api', version).value });
    hint(2);
    nats.watches[0]?.push(nats.store('api', 2));
    nats.watches[0]?.push(nats.store('api', 3));
    await eventually(() => listener.version('api') === 3, 'the stored one came');
    hint(3);
    expect(listener.updates.map(({ via, document }) => [via, (document as { version: number }).version])).toEqual([
      ['hint', 2],
      ['watch', 2],
      ['watch', 3],
      ['hint', 3],
    ]);
  });

  it('delivers and reports nothing once it is closed', async () => {
    await source.watch(listener);
    await source.close();
    nats.hintListeners[0]?.(null, { subject: 'headgate.policy.api', data: nats.store('api', 1).value });
    nats.hintListeners[0]?.(new Error('late'), { subject: '', data: new Uint8Array() });
    nats.statuses[0]?.push({ type: 'disconnect' });
    await eventually(() => nats.log.includes('unsubscribe'), 'it has left');
    expect(nats.watches[0]?.isStopped).toBe(true);
    expect(listener.updates).toEqual([]);
    expect(listener.troubles).toEqual([]);
  });
});
