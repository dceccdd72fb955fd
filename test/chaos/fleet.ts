import { join } from 'node:path';
import { createLimiter, type Milliseconds, type PolicyDocument, type RedisClient } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { AdmissionLog } from './admission-log.js';
import { monotonicNow } from './instance/clock.js';
import type { InstanceReport, Load, RedisAddress } from './instance/messages.js';
import type { InstanceProcess } from './instance-process.js';
import type { ProcessPool } from './process-pool.js';
import { type Admission, backAfter, worstWindow } from './window-oracle.js';

export interface FleetOptions {
  readonly processes: ProcessPool;
  /** Where the processes put their admissions. */
  readonly directory: string;
  readonly policy: PolicyDocument;
  readonly redis: RedisAddress;
  /** For instances that reach it in another way than the others. Default: `redis` for all. */
  readonly redisOf?: (index: number) => RedisAddress;
  readonly natsPort?: number;
  /** Processes. Default 5. */
  readonly size?: number;
  /** Limiters in each. Default 1. */
  readonly limiters?: number;
  readonly keys?: readonly string[];
  /** What the whole fleet asks for, as a multiple of the ceiling's rate, for each key. Default 3. */
  readonly demand?: number;
  /** Length of the window in which the fleet must admit 95 % of the rate to count as being back. */
  readonly windowMs: Milliseconds;
}

/** What became of a process in the end. */
export interface Ending {
  readonly name: string;
  readonly report: InstanceReport;
  /** What was wrong with how the process ended; undefined: nothing. */
  readonly trouble: string | undefined;
}

const BACK_WITHIN_MS: Milliseconds = 20_000;
/** Of the burst: as near as this a fleet must have come to its bound before anything is done to it. */
const NEAR = 0.5;
const NEAR_WITHIN_MS: Milliseconds = 2_000;

/** A fleet of processes that share a ceiling, each behind a proxy of its own where they all use one server. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #log = new AdmissionLog();
  readonly #closed = new Set<InstanceProcess>();
  readonly instances: InstanceProcess[] = [];
  /** The way to Redis of the instance with the same index. */
  readonly links: TcpProxy[] = [];
  readonly rate: number;
  readonly burst: number;
  /** When its callers began. */
  startedAt: Milliseconds = 0;

  constructor(options: FleetOptions) {
    this.#options = options;
    const { ceiling } = options.policy;
    this.rate = ceiling && 'rate' in ceiling ? ceiling.rate : 0;
    this.burst = ceiling && 'burst' in ceiling ? ceiling.burst : 0;
  }

  get size(): number {
    return this.#options.size ?? 5;
  }

  get keys(): readonly string[] {
    return this.#options.keys ?? ['everybody'];
  }

  /** What one process is asked for. */
  get load(): Load {
    const { demand = 3 } = this.#options;
    return { keys: this.keys, perSecond: (demand * this.rate * this.keys.length) / this.size };
  }

  /**
   * Fills the buckets, as those of a store that is in use and has long been idle are: only then does the least token too
   * many show, since demand then holds the fleet at the bound.
   */
  static async fill(redis: string | RedisClient, policy: PolicyDocument, keys: readonly string[]): Promise<void> {
    const limiter = await createLimiter({
      redis,
      policies: [policy],
      newStore: 'full',
      group: 'filler',
      telemetry: false,
      onTrouble: () => {},
    });
    for (const key of keys) {
      await eventually(async () => (await limiter.policy(policy.name).acquire(key)).allowed, `"${key}" was filled`, {
        deadlineMs: BACK_WITHIN_MS,
      });
    }
    await limiter.close();
  }

  async start(): Promise<void> {
    await Promise.all(Array.from({ length: this.size }, (_, index) => this.launch(index)));
    this.startedAt = monotonicNow();
    await this.atBound();
  }

  /**
   * Waits until the fleet is as near its bound as leases let it come: from then on, any token too many shows. On a machine
   * too busy for that, until it admits 95 % of its rate: what a stall lost is refilled, but never made up for.
   */
  async atBound(): Promise<void> {
    const terms = { what: 'any window', ratePerSecond: this.rate, burst: this.burst };
    const isNear = (key: number): boolean =>
      worstWindow(this.admissions(), { ...terms, key }).excess > -NEAR * this.burst;
    const patience = monotonicNow() + NEAR_WITHIN_MS;
    await eventually(
      () => this.keys.every((_, key) => isNear(key)) || monotonicNow() > patience,
      'the fleet admits all it may',
      { everyMs: 25 },
    );
    if (monotonicNow() > patience) await this.back(this.startedAt);
  }

  /** Starts the process at a place of the fleet; also again, where one has ended. */
  async launch(index: number): Promise<InstanceProcess> {
    const { processes, directory, policy, redisOf, natsPort, limiters = 1 } = this.#options;
    const redis = redisOf?.(index) ?? this.#options.redis;
    const name = `instance-${index}`;
    const file = join(directory, `${name}.admissions`);
    this.#log.add(file);
    const instance = processes.take();
    this.instances[index] = instance;
    await instance.start({
      name,
      redis: redis.kind === 'server' ? { kind: 'server', port: (await this.#link(index, redis.port)).port } : redis,
      ...(natsPort && { natsPort }),
      policies: [policy],
      limiters,
      group: 'fleet',
      admissionsFile: file,
      load: this.load,
    });
    return instance;
  }

  admissions(): readonly Admission[] {
    return this.#log.read();
  }

  /** Tokens admitted since `from`. */
  admittedSince(from: Milliseconds): number {
    return this.admissions().reduce((sum, { at, cost }) => (at >= from ? sum + cost : sum), 0);
  }

  /** Waits until the fleet admits 95 % of its rate for every key, and answers how long after `from` that began. */
  async back(from: Milliseconds, ratePerSecond = this.rate): Promise<Milliseconds> {
    const { windowMs: lengthMs } = this.#options;
    let found: Milliseconds | undefined;
    const seen = (): boolean => {
      // One key must not make up for another.
      const times = this.keys.map((_, key) => {
        const admissions = this.admissions().filter((admission) => admission.key === key);
        return backAfter(admissions, from, { ratePerSecond, lengthMs });
      });
      const latest = times.reduce((a, b) => (a === undefined || b === undefined ? undefined : Math.max(a, b)), 0);
      found = latest;
      return latest !== undefined;
    };
    await eventually(seen, 'the fleet admits 95 % of its rate', { deadlineMs: BACK_WITHIN_MS, everyMs: 50 });
    return found ?? 0;
  }

  /** Waits until every running process says what `condition` asks for. */
  async each(condition: (report: InstanceReport) => boolean, message: string): Promise<void> {
    await eventually(
      async () => (await Promise.all(this.instances.map((instance) => instance.report()))).every(condition),
      message,
      { everyMs: 50, deadlineMs: BACK_WITHIN_MS },
    );
  }

  async setLoad(load: Load): Promise<void> {
    await Promise.all(this.instances.map((instance) => instance.setLoad(load)));
  }

  /** Breaks or mends the way to Redis of all. */
  async onLinks(action: (link: TcpProxy) => unknown): Promise<void> {
    await Promise.all(this.links.map(action));
  }

  /** Closes every limiter there is, and gives the processes back. */
  async close(): Promise<Ending[]> {
    const endings = await Promise.all(
      this.instances.map(async (instance, index) => {
        if (!instance.isRunning) return undefined;
        const report = await instance.close();
        this.#closed.add(instance);
        return { name: `instance-${index}`, report, trouble: await this.#options.processes.giveBack(instance) };
      }),
    );
    return endings.filter((ending) => ending !== undefined);
  }

  /** Ends whatever is left of it, however a test went. */
  async dispose(): Promise<void> {
    await Promise.all(this.instances.filter((one) => !this.#closed.has(one)).map((one) => one.kill()));
    await Promise.all(this.links.map((link) => link.stop()));
    this.#log.close();
  }

  async #link(index: number, targetPort: number): Promise<TcpProxy> {
    const link = this.links[index] ?? (await TcpProxy.start({ targetPort }));
    this.links[index] = link;
    return link;
  }
}
