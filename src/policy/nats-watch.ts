import { PolicySourceError } from '../errors.js';
import type { Random, Time, Timer } from '../time.js';
import type { Milliseconds } from '../units.js';
import { headersOf } from './nats-bucket.js';
import type { NatsConnection, NatsIterator, NatsKvEntry, NatsMessage } from './nats-client.js';
import type { NatsLink } from './nats-link.js';
import { policyUpdate } from './nats-message.js';
import { explain, GivenConnectionClosed } from './nats-trouble.js';
import type { PolicyListener, PolicyUpdate } from './policy-source.js';

/** Pauses between attempts, in ms: doubled at each failure, cut to the longest, and half of it left to chance. */
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** A server that comes back is not asked by its whole fleet at once, but within this time. */
const SPREAD_AFTER_RECONNECT_MS = 250;

export interface NatsWatchOptions {
  readonly link: NatsLink;
  readonly bucket: string;
  /** Hints come on `<subject>.<policy name>`. */
  readonly subject: string;
  readonly listener: PolicyListener;
  readonly rereadMs: Milliseconds;
  /** Whether {@link NatsWatch.start} waits for a server that is out of reach. */
  readonly waitOnFirstConnect: boolean;
  readonly time: Pick<Time, 'after'>;
  readonly random: Random;
}

/**
 * Keeps one listener up to date with one bucket, whatever happens to the server and the way to it.
 *
 * It works in sessions. A session listens for hints and for changes, then reads everything once (in that order, so that
 * nothing falls in between), and then only waits. It ends, and the next one begins, when the connection was lost and is
 * back (hints were lost, and the server may have lost its data), when the watch ends, when something fails (then after
 * a pause), and in any case every `rereadMs`, against all that nobody thought of.
 */
export class NatsWatch {
  readonly #options: NatsWatchOptions;
  readonly #started: Deferred = deferred();
  readonly #stopped: Deferred = deferred();
  #isStopped = false;
  /** Sessions that got as far as to have read everything. */
  #sessions = 0;
  #failures = 0;
  /** What was reported last, so that a long outage is reported once; `undefined` while all is well. */
  #reported: string | undefined;
  #hintsRefused = false;

  constructor(options: NatsWatchOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the present policies have been delivered, or at the first failure that may pass (unless told to wait
   * for that too); trying goes on either way. Rejects at a first failure that can't pass.
   */
  start(): Promise<void> {
    void this.#run();
    return this.#started.promise;
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopped.resolve();
    this.#started.reject(new PolicySourceError('The policy source was closed before it had read its policies.'));
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      try {
        await this.#session();
        await this.#pause(this.#options.random() * SPREAD_AFTER_RECONNECT_MS);
      } catch (cause) {
        const { error, hopeless } = explain(cause, 'watch policies', this.#options.bucket);
        if (hopeless && !this.#started.isSettled()) {
          this.#isStopped = true;
          this.#started.reject(error);
          return;
        }
        this.#report(error);
        if (cause instanceof GivenConnectionClosed) return;
        if (!this.#options.waitOnFirstConnect) this.#started.resolve();
        await this.#pause(this.#nextPauseMs());
      }
    }
  }

  async #session(): Promise<void> {
    const { link, subject, rereadMs, random, time } = this.#options;
    const connection = await link.connection();
    const watchman = new ConnectionWatch(connection, () =>
      this.#report(new PolicySourceError('Lost the connection to NATS: known policies stay until it is back.')),
    );
    let changes: NatsIterator<NatsKvEntry> | undefined;
    let unsubscribe = (): void => {};
    let due: Timer | undefined;
    try {
      const bucket = await link.bucket();
      const hints = connection.subscribe(`${subject}.>`, { callback: (error, hint) => this.#takeHint(error, hint) });
      unsubscribe = () => hints.unsubscribe();
      changes = await bucket.watch();
      await connection.flush();
      const via = this.#sessions === 0 ? 'snapshot' : 'watch';
      for (const entry of await bucket.readAll()) this.#take(entry, via);
      this.#sessionStands();
      const rereadDue = new Promise<void>((resolve) => {
        due = time.after(rereadMs * (0.5 + random()), resolve);
      });
      await Promise.race([this.#stopped.promise, rereadDue, watchman.regained, this.#follow(changes)]);
    } finally {
      due?.cancel();
      watchman.stop();
      changes?.stop();
      // On a connection that was closed there is nothing to leave.
      if (!connection.isClosed()) unsubscribe();
    }
  }

  #sessionStands(): void {
    this.#sessions += 1;
    this.#failures = 0;
    this.#started.resolve();
    if (this.#reported === undefined) return;
    this.#report(new PolicySourceError('NATS is back: all policies have been read again.'));
    this.#reported = undefined;
  }

  async #follow(changes: AsyncIterable<NatsKvEntry>): Promise<never> {
    for await (const entry of changes) this.#take(entry, 'watch');
    throw new Error('the watch on the bucket ended');
  }

  #take(entry: NatsKvEntry, via: 'snapshot' | 'watch'): void {
    if (entry.operation !== 'PUT') {
      this.#deliver({ name: entry.key, document: undefined, via, publishedAt: entry.created.getTime() });
      return;
    }
    this.#deliver(policyUpdate(entry.key, entry.value, via, headersOf(entry), entry.created.getTime()));
  }

  #takeHint(error: Error | null, hint: NatsMessage): void {
    if (error) {
      // Without hints, changes still come from the bucket; and every session would be refused anew.
      if (!this.#hintsRefused && !this.#isStopped)
        this.#options.listener.trouble(explain(error, 'take hints', this.#options.bucket).error);
      this.#hintsRefused = true;
      return;
    }
    const name = hint.subject.slice(this.#options.subject.length + 1);
    this.#deliver(policyUpdate(name, hint.data, 'hint', hint.headers));
  }

  #deliver(update: PolicyUpdate): void {
    if (!this.#isStopped) this.#options.listener.update(update);
  }

  #report(error: Error): void {
    if (this.#isStopped || error.message === this.#reported) return;
    this.#reported = error.message;
    this.#options.listener.trouble(error);
  }

  #nextPauseMs(): Milliseconds {
    const longest = Math.min(LONGEST_PAUSE_MS, SHORTEST_PAUSE_MS * 2 ** this.#failures);
    this.#failures += 1;
    return longest * (0.5 + this.#options.random() / 2);
  }

  async #pause(delayMs: Milliseconds): Promise<void> {
    let timer: Timer | undefined;
    const over = new Promise<void>((resolve) => {
      timer = this.#options.time.after(delayMs, resolve);
    });
    await Promise.race([over, this.#stopped.promise]);
    timer?.cancel();
  }
}

/** Follows the fate of one connection from the moment it is made, so that no loss goes unseen while a session sets up. */
class ConnectionWatch {
  /** Resolves when the connection was lost and is back; rejects when it is closed for good. */
  readonly regained: Promise<void>;
  readonly #status: AsyncIterable<{ readonly type: string }> & { stop?(): void };

  constructor(connection: NatsConnection, onLost: () => void) {
    this.#status = connection.status();
    const closed = connection.closed().then(() => {
      throw new Error('the connection was closed');
    });
    this.regained = Promise.race([this.#untilRegained(onLost), closed]);
    // Heard by the session once it stands; until then a failure shows in what the session does.
    this.regained.catch(() => {});
  }

  stop(): void {
    this.#status.stop?.();
  }

  async #untilRegained(onLost: () => void): Promise<void> {
    for await (const { type } of this.#status) {
      if (type === 'disconnect') onLost();
      if (type === 'reconnect') return;
    }
  }
}

interface Deferred {
  readonly promise: Promise<void>;
  isSettled(): boolean;
  resolve(): void;
  reject(error: Error): void;
}

/** A promise to be settled from outside, once. (`Promise.withResolvers` needs Node 22.) */
function deferred(): Deferred {
  let settled = false;
  let succeed = (): void => {};
  let fail = (_error: Error): void => {};
  const promise = new Promise<void>((resolve, reject) => {
    succeed = resolve;
    fail = reject;
  });
  promise.catch(() => {});
  return {
    promise,
    isSettled: () => settled,
    resolve() {
      settled = true;
      succeed();
    },
    reject(error) {
      settled = true;
      fail(error);
    },
  };
}
