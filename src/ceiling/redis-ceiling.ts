import { CeilingError, InvalidOptionError, type RedisClientError, show } from '../errors.js';
import { type Random, randomId } from '../time.js';
import type { Milliseconds } from '../units.js';
import { type CeilingStore, FLEET_TTL_MS, type LeaseCall, type LeaseReply } from './ceiling-store.js';
import { type GivenRedisClient, isNodeRedis } from './node-redis.js';
import { NodeRedisClient } from './node-redis-client.js';
import { CLIENT_SHAPE, isRedisClient, type RedisClient } from './redis-client.js';
import { watchGivenClient } from './redis-client-watch.js';
import { connectRedis } from './redis-connection.js';
import { decodeLeaseReplies, LeaseArguments, leaseKeys } from './redis-lease-codec.js';
import { RedisMarks } from './redis-marks.js';
import { RedisPace } from './redis-pace.js';
import { repliesTo, replyAt, runScript } from './redis-script.js';
import { RedisSeats } from './redis-seats.js';
import { type ServerTrouble, troubleWith } from './redis-server-check.js';
import { heartbeatScript, leaseScript } from './scripts.generated.js';

/** Settings of {@link RedisCeiling}. */
export interface RedisCeilingOptions {
  /** An ioredis or iovalkey client, `Redis` or `Cluster`. It is never closed; see {@link RedisCeilingOptions.disconnect}. */
  readonly client: RedisClient;
  /** What all keys begin with, inside their hash tag. Default `'hg'`. */
  readonly prefix?: string;
  /** What buckets hold in a store without any data: nothing (default), or, where there was none before, all they can. */
  readonly newStore?: 'empty' | 'full';
  /** Told about what does not stop the ceiling and yet weakens it (see `docs/decisions/who-answers.md`). */
  readonly onTrouble?: (error: CeilingError | RedisClientError) => void;
  /** For eras; `crypto` by default. */
  readonly random?: Random;
  /** The client neither queues a command nor sends it again after a reconnect. Default false: taken to do so. */
  readonly sendsOnce?: boolean;
  /** Closes the client, for the one who opened it. */
  readonly disconnect?: () => void;
}

/** A ceiling in the Redis that `redis` names, which it then opens and closes, or that it is a client of. */
export async function redisCeiling(
  redis: string | GivenRedisClient,
  options: Omit<RedisCeilingOptions, 'client' | 'disconnect' | 'sendsOnce'> = {},
): Promise<RedisCeiling> {
  if (typeof redis === 'string')
    return new RedisCeiling({ ...options, ...(await connectRedis(redis)), sendsOnce: true });
  const client = isRedisClient(redis) ? redis : isNodeRedis(redis) ? new NodeRedisClient(redis) : undefined;
  if (client) {
    const release = watchGivenClient(redis, client, options.onTrouble ?? (() => {}));
    return new RedisCeiling({ ...options, client, disconnect: release });
  }
  throw new InvalidOptionError(
    `Expected \`redis\` to be a URL, a client of ioredis or iovalkey (with ${CLIENT_SHAPE}), or one of node-redis 5 or ` +
      `6 (createClient, createCluster or createSentinel), got ${show(redis)}.`,
  );
}

/** Calls in one script: a call costs about 20 µs, and nobody else is served meanwhile. */
const MOST_CALLS = 64;
/** A primary may be made a replica and a primary again without closing its connections. */
const IDENTIFY_EVERY_MS: Milliseconds = 10_000;
const PREFIX = /^[A-Za-z0-9_-]{1,32}$/;

/** One batch of calls, all about the node that answers them. */
class Batch {
  readonly calls: LeaseCall[] = [];
  readonly headers: string[] = [];
  /** Header and bucket of each in turn. */
  readonly keys: string[] = [];
  readonly args: LeaseArguments;
  /** Once it is sent. */
  answer: Promise<(LeaseReply | Error)[]> | undefined;

  constructor(most: number) {
    this.args = new LeaseArguments(most);
  }

  /** Answers its place; throws where it is no lease call. */
  add(call: LeaseCall, header: string, bucket: string): number {
    this.args.add(call);
    this.headers.push(header);
    this.keys.push(header, bucket);
    return this.calls.push(call) - 1;
  }
}

/** The ceilings of a fleet in Redis, by `lua/lease.lua`. */
export class RedisCeiling implements CeilingStore {
  readonly seats: RedisSeats;
  readonly pacer: RedisPace;
  readonly marks: RedisMarks;
  readonly #client: RedisClient;
  readonly #prefix: string;
  readonly #newStore: 'empty' | 'full';
  readonly #onTrouble: NonNullable<RedisCeilingOptions['onTrouble']>;
  /** What its eras begin with. */
  readonly #identity: string;
  readonly #disconnect: (() => void) | undefined;
  readonly #sendsOnce: boolean;
  readonly #whenReady = (): void => {
    this.#identified = new Set();
    void this.#check();
  };
  readonly #whenClosed = (): void => {
    this.#identified = new Set();
  };
  /** Headers that have met the server at the other end of this connection; another set for each. */
  #identified = new Set<string>();
  #identifiedSince: Milliseconds = 0;
  #eras = 0;
  #mayIdentify = true;
  #checked = false;
  #closed = false;

  constructor(options: RedisCeilingOptions) {
    const prefix = options.prefix ?? 'hg';
    if (!PREFIX.test(prefix)) {
      throw new InvalidOptionError(
        `Expected the Redis key prefix to be 1 to 32 characters of A-Z a-z 0-9 _ -, got ${show(prefix)}.`,
      );
    }
    this.#client = options.client;
    this.#prefix = prefix;
    this.#newStore = options.newStore ?? 'empty';
    this.#onTrouble = options.onTrouble ?? (() => {});
    this.#identity = randomId(options.random);
    this.#disconnect = options.disconnect;
    this.#sendsOnce = options.sendsOnce ?? false;
    this.seats = new RedisSeats(options.client, prefix);
    this.pacer = new RedisPace(options.client, prefix);
    this.marks = new RedisMarks({ ...options, prefix, mayIdentify: () => this.#mayIdentify });
    this.#client.on('ready', this.#whenReady);
    this.#client.on('close', this.#whenClosed);
    // A client that connects with its first command (`lazyConnect`) would otherwise wait for one for ever.
    if (this.#client.status === 'ready' || this.#client.status === 'wait') void this.#check();
  }

  get ready(): boolean {
    return !this.#closed && this.#client.status === 'ready';
  }

  lease(calls: readonly LeaseCall[]): Promise<LeaseReply>[] {
    if (!this.ready) return calls.map(() => Promise.reject(this.#notReady()));
    const batches: Batch[] = [];
    const open = new Map<string, Batch>();
    const places = calls.map((call, i) => {
      try {
        const [header, bucket] = leaseKeys(this.#prefix, call);
        // In a cluster the keys of one script share a slot, and so a partition.
        const node = this.#client.isCluster ? header : '';
        let batch = open.get(node);
        if (!batch || batch.calls.length === MOST_CALLS) {
          batch = new Batch(Math.min(MOST_CALLS, calls.length - i));
          open.set(node, batch);
        }
        const index = batch.add(call, header, bucket);
        if (index === 0) batches.push(batch);
        return { batch, index };
      } catch (error) {
        return { error };
      }
    });
    // All are sent within this call, so that whatever traces the client sees its caller's context.
    for (const batch of batches) batch.answer = this.#send(batch);
    return places.map(({ batch, index, error }) => {
      return batch ? replyAt(batch.answer, index) : Promise.reject(error);
    });
  }

  async heartbeat(group: string, holder: string): Promise<number> {
    if (!this.ready) throw this.#notReady();
    const key = `{${this.#prefix}:fleet}:${group}`;
    const members = await this.#run(() =>
      runScript(this.#client, heartbeatScript, [key], [holder, String(FLEET_TTL_MS)]),
    );
    if (typeof members !== 'number' || members < 1) {
      throw new CeilingError(`Expected the number of members of a group, got ${show(members)}.`);
    }
    return members;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#client.removeListener('ready', this.#whenReady);
    this.#client.removeListener('close', this.#whenClosed);
    this.#disconnect?.();
  }

  #send(batch: Batch): Promise<(LeaseReply | Error)[]> {
    const only = (index: number): Batch => {
      const one = new Batch(1);
      const call = batch.calls[index] as LeaseCall;
      one.add(call, ...leaseKeys(this.#prefix, call));
      return one;
    };
    return repliesTo(batch, { size: batch.calls.length, only, execute: (batch) => this.#execute(batch) });
  }

  async #execute(batch: Batch): Promise<LeaseReply[]> {
    const identify = this.#mustIdentify(batch);
    const identified = this.#identified;
    // An identity for data that the script may find missing: no other script has the same, of this ceiling or another.
    const newEra = this.#identity + (this.#eras++).toString(36);
    const preamble = [newEra, identify ? '1' : '0', this.#newStore];
    const answer = await this.#run(() =>
      runScript(this.#client, leaseScript, batch.keys, [...preamble, ...batch.args.list], 'bytes'),
    );
    if (identify) for (const header of batch.headers) identified.add(header);
    return decodeLeaseReplies(answer, batch.calls.length);
  }

  /**
   * Whether the script has to look which server it runs on. It need not where all its headers have met this server on
   * this very connection, and nothing can bring the call to another.
   */
  #mustIdentify(batch: Batch): boolean {
    if (!this.#mayIdentify || !this.#sendsOnce) return this.#mayIdentify;
    const now = performance.now();
    if (now - this.#identifiedSince > IDENTIFY_EVERY_MS) {
      this.#identified = new Set();
      this.#identifiedSince = now;
    }
    return batch.headers.some((header) => !this.#identified.has(header));
  }

  async #run(command: () => Promise<unknown>): Promise<unknown> {
    try {
      return await command();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new CeilingError(`The ceiling in Redis did not execute the call: ${reason}`, { cause: error });
    }
  }

  #notReady(): CeilingError {
    return new CeilingError(
      this.#closed ? 'The ceiling is closed.' : `The connection to Redis is not ready, it is "${this.#client.status}".`,
    );
  }

  /** Looks once at whether the servers are set up so that the guarantee holds. */
  async #check(): Promise<void> {
    if (this.#checked || this.#closed) return;
    this.#checked = true;
    let troubles: ServerTrouble[];
    try {
      troubles = await troubleWith(this.#client);
    } catch {
      // No answer: again on the next connection.
      this.#checked = false;
      return;
    }
    for (const { error, cannotIdentify } of troubles) {
      if (cannotIdentify) this.#mayIdentify = false;
      if (!this.#closed) this.#onTrouble(error);
    }
  }
}
