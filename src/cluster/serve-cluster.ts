import cluster, { type Worker } from 'node:cluster';
import type { MarkFeed } from '../ceiling/mark-store.js';
import { MemoryCeiling, storeClock } from '../ceiling/memory-ceiling.js';
import {
  CeilingError,
  type CeilingStore,
  memoryPolicySource,
  type PolicyBook,
  type PolicyDocument,
  type PolicySource,
  type Time,
} from '../index.js';
import { PolicyBook as Book } from '../policy/publisher.js';
import { PolicyRegistry } from '../policy/registry.js';
import { silentObserver } from '../telemetry/observer.js';
import { systemTime } from '../time.js';
import { type Channel, post } from './channel.js';
import { type Answers, type FromPrimary, type FromWorker, isOurs, PROTOCOL, type Question } from './messages.js';

/** Settings of {@link serveCluster}. */
export interface ServeClusterOptions {
  /** Policies that are in force from the start. Default: none. */
  readonly policies?: readonly PolicyDocument[];
  /**
   * What the ceilings hold at first. Default: `'full'`, as nothing was there before; but `'empty'` where this process
   * has served before, since workers may still hold tokens of that time.
   */
  readonly newStore?: 'empty' | 'full';
  /** Where the ceilings are kept. Default: in the memory of this process. */
  readonly ceiling?: CeilingStore;
  /** Clocks. Default: the process's own. */
  readonly time?: Time;
}

/** What a primary serves, and how it ends. */
export interface ClusterServer {
  /** Lists, publishes and watches the policies of the cluster. */
  readonly policies: PolicyBook;
  /** The store itself, for a limiter in the primary: `createLimiter({ ceiling, policySource })`. */
  readonly ceiling: CeilingStore;
  readonly policySource: PolicySource;
  /** Serves a process that was forked with `child_process.fork` too; the workers of `cluster` are served without it. */
  attach(child: Channel): void;
  /** Stops serving: the workers' stores are not ready from then on. Holds nothing that keeps the process alive. */
  close(): Promise<void>;
}

let servedBefore = false;

/**
 * Makes the primary of a Node cluster keep the ceilings and the policies of its workers, which reach them by
 * `clusterCeiling()` and `clusterPolicySource()`: a fleet on one machine that needs no servers.
 */
export function serveCluster(options: ServeClusterOptions = {}): ClusterServer {
  const server = new Server(options);
  servedBefore = true;
  return server;
}

class Server implements ClusterServer {
  readonly policies: PolicyBook;
  readonly ceiling: CeilingStore;
  readonly policySource: PolicySource;
  readonly #ownsCeiling: boolean;
  /** Everybody who is served, and how to stop listening to them. */
  readonly #channels = new Map<Channel, () => void>();
  readonly #watchers = new Set<Channel>();
  readonly #registry: PolicyRegistry;
  readonly #onFork = (worker: Worker): void => this.attach(worker.process as Channel);
  #closed = false;

  constructor(options: ServeClusterOptions) {
    const time = options.time ?? systemTime;
    this.#ownsCeiling = options.ceiling === undefined;
    this.ceiling =
      options.ceiling ??
      new MemoryCeiling({
        clock: storeClock(time),
        newStore: options.newStore ?? (servedBefore ? 'empty' : 'full'),
      });
    this.policySource = memoryPolicySource(options.policies);
    this.#registry = new PolicyRegistry({ policies: [], time, observer: silentObserver });
    this.policies = new Book({ registry: this.#registry, source: this.policySource, time, observer: silentObserver });
    // The memory source tells what it has within the call.
    void this.policySource.watch({
      update: (update) => {
        this.#registry.apply(update);
        for (const channel of this.#watchers) this.#tell(channel, { headgate: PROTOCOL, kind: 'policy', update });
      },
      trouble: () => {},
    });
    for (const worker of Object.values(cluster.workers ?? {})) if (worker) this.attach(worker.process as Channel);
    cluster.on('fork', this.#onFork);
  }

  attach(channel: Channel): void {
    if (this.#closed || this.#channels.has(channel) || !channel.connected) return;
    const onMessage = (message: unknown): void => this.#receive(channel, message);
    const onDisconnect = (): void => this.#forget(channel);
    channel.on('message', onMessage);
    channel.on('disconnect', onDisconnect);
    this.#channels.set(channel, () => {
      channel.off('message', onMessage);
      channel.off('disconnect', onDisconnect);
    });
    this.#tell(channel, { headgate: PROTOCOL, kind: 'serving' });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    cluster.off('fork', this.#onFork);
    for (const channel of [...this.#channels.keys()]) {
      this.#tell(channel, { headgate: PROTOCOL, kind: 'closed' });
      this.#forget(channel);
    }
    await this.policySource.close();
    if (this.#ownsCeiling) await this.ceiling.close();
  }

  /** A worker that is gone leaves nothing here; what it held on lease ends with its lease. */
  #forget(channel: Channel): void {
    this.#channels.get(channel)?.();
    this.#channels.delete(channel);
    this.#watchers.delete(channel);
  }

  #receive(channel: Channel, message: unknown): void {
    if (!isOurs(message)) return;
    const request = message as FromWorker;
    if (request.kind === 'hello') {
      this.#tell(channel, { headgate: PROTOCOL, kind: 'serving' });
      return;
    }
    if (request.kind !== 'ask') return;
    const { id, question } = request;
    this.#answer(channel, question).then(
      (answer) => this.#tell(channel, { headgate: PROTOCOL, kind: 'answer', id, answer }),
      (error: Error) =>
        this.#tell(channel, {
          headgate: PROTOCOL,
          kind: 'failure',
          id,
          error: { name: error.name, message: error.message },
        }),
    );
  }

  async #answer(channel: Channel, question: Question): Promise<Answers[Question['kind']]> {
    switch (question.kind) {
      case 'lease':
        return Promise.all(this.ceiling.lease(question.calls));
      case 'pace':
        if (!this.ceiling.pacer) throw new CeilingError('The ceiling that is served has no pacer.');
        return Promise.all(this.ceiling.pacer.pace(question.calls));
      case 'hold':
        if (!this.ceiling.seats) throw new CeilingError('The ceiling that is served does not count seats.');
        return Promise.all(this.ceiling.seats.hold(question.calls));
      case 'mark':
        if (!this.ceiling.marks) throw new CeilingError('The ceiling that is served keeps no marks.');
        return this.ceiling.marks.mark(question.call);
      case 'feed':
        // One that keeps none has nothing to tell, which is no reason for each worker to complain every second.
        return this.ceiling.marks?.feed(question.era, question.seq, question.reading) ?? NOTHING_MARKED;
      case 'heartbeat':
        return this.ceiling.heartbeat(question.group, question.holder);
      case 'watch':
        this.#watchers.add(channel);
        return Array.from(this.#registry.policies(), ({ name, document }) => ({ name, document, via: 'snapshot' }));
      case 'list':
        return this.policySource.list();
      case 'publish':
        await this.policySource.publish(question.document, question.expected, question.trace);
        return null;
    }
  }

  #tell(channel: Channel, message: FromPrimary): void {
    post(channel, message);
  }
}

const NOTHING_MARKED: MarkFeed = { era: 'none', born: 0, now: 0, fresh: false, marks: [], seq: 0, more: false };
