import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Milliseconds, PolicyDocument, Tokens } from '../../src/index.js';
import { NatsServer, type NatsServerOptions } from '../support/nats-server.js';
import { RedisServer, type RedisServerOptions } from '../support/redis-server.js';
import { ChangingTerms, TIGHTENED } from './changing-terms.js';
import { Fleet, type FleetOptions } from './fleet.js';
import { monotonicNow } from './instance/clock.js';
import type { InstanceReport } from './instance/messages.js';
import type { ProcessPool } from './process-pool.js';
import { ROUNDING, type WindowRule, worstWindow } from './window-oracle.js';

/** How long the servers of the fleets here lend for: short, so that a fault that outlasts it is soon over. */
export const LEASE_MS: Milliseconds = 1_000;
/** What the store waits longer than that, at most. */
export const LEASE_END_MS: Milliseconds = LEASE_MS * 1.01 + 100;

/** The policy that a scenario does not say otherwise of. */
export const POLICY = {
  name: 'api',
  ceiling: { rate: 400, burst: 400 },
  lease: { durationMs: LEASE_MS },
} satisfies PolicyDocument;

/** What a scenario claims of its run. */
export interface Claim {
  /** What it says of windows; may depend on what the instances saw. */
  readonly rules: readonly WindowRule[] | ((reports: readonly InstanceReport[]) => readonly WindowRule[]);
  /** When the fault had ended; absent where there is nothing to come back from. */
  readonly healedAt?: Milliseconds;
  /** How long the fleet may take to be back at 95 %: goal 2 s, with room for a busy machine. Default 10 s. */
  readonly backWithinMs?: Milliseconds;
  /** The rate it is to be back at. Default: its policy's. */
  readonly rate?: number;
  /** Longest an `acquire` without `maxWaitMs` may have waited. Default {@link WAIT_MS}. */
  readonly waitMs?: Milliseconds;
}

/** What came of it: a row of the table. */
export interface Outcome {
  /** Most tokens admitted beyond burst + rate × length, over all windows the design promises something of. */
  readonly over: Tokens;
  readonly backAfterMs: Milliseconds | undefined;
  readonly longestWaitMs: Milliseconds;
  readonly unhandledRejections: number;
  readonly reports: readonly InstanceReport[];
  /** What was not as it should be. */
  readonly problems: readonly string[];
}

/**
 * Two calls, each up to its deadline, and the pause between them: a quarter of a second; then the answer is known or the
 * store counts as lost. With room for callers and servers that get a small part of a core each.
 */
const WAIT_MS: Milliseconds = 1_000;

/** Where one scenario plays: its servers and processes, which end with it. */
export class Stage {
  readonly #processes: ProcessPool;
  readonly #windowMs: Milliseconds;
  /** How long a fleet is watched after a fault: what a fault gave away shows only once it has been spent. */
  readonly #watchMs: Milliseconds;
  /** Whether there is time for faults of their full length. */
  readonly full: boolean;
  /** Whether the fleet's policy is raised and tightened while the scenario plays: `ChangingTerms`. */
  readonly changesTerms: boolean;
  readonly #cleanups: (() => Promise<unknown>)[] = [];
  #changing: ChangingTerms | undefined;

  constructor(options: { processes: ProcessPool; full: boolean; changesTerms?: boolean }) {
    const { processes, full, changesTerms = false } = options;
    this.#processes = processes;
    this.full = full;
    this.changesTerms = changesTerms;
    this.#windowMs = full ? 1_000 : 500;
    this.#watchMs = full ? 3_000 : 1_200;
  }

  now(): Milliseconds {
    return monotonicNow();
  }

  /** Has `cleanup` run when the scenario is over, last one first. */
  after(cleanup: () => Promise<unknown>): void {
    this.#cleanups.push(cleanup);
  }

  /** Lets a fault last: `ms`, or `fullMs` where there is time. */
  async last(ms: Milliseconds, fullMs: Milliseconds = ms): Promise<void> {
    await sleep(this.full ? fullMs : ms);
  }

  async redis(options: RedisServerOptions = {}): Promise<RedisServer> {
    const server = await RedisServer.start(options);
    this.after(() => server.stop());
    return server;
  }

  async nats(options: NatsServerOptions = {}): Promise<NatsServer> {
    const server = await NatsServer.start(options);
    this.after(() => server.stop());
    return server;
  }

  async directory(): Promise<string> {
    const directory = await mkdtemp(join(tmpdir(), 'headgate-chaos-'));
    this.after(() => rm(directory, { recursive: true, force: true }));
    return directory;
  }

  /** A fleet at full load on buckets that were full when it began, so that it goes along the bound. */
  async fleet(
    options: Partial<FleetOptions> & Pick<FleetOptions, 'redis'>,
    fillBy: Parameters<typeof Fleet.fill>[0] | undefined = undefined,
  ): Promise<Fleet> {
    const { redis, policy = POLICY } = options;
    const natsPort = options.natsPort ?? (this.changesTerms ? (await this.nats()).port : undefined);
    const fleet = new Fleet({
      processes: this.#processes,
      directory: await this.directory(),
      windowMs: this.#windowMs,
      ...options,
      policy,
      ...(natsPort && { natsPort }),
    });
    this.after(() => fleet.dispose());
    const filler = fillBy ?? (redis.kind === 'server' ? `redis://127.0.0.1:${redis.port}` : undefined);
    if (filler) await Fleet.fill(filler, policy, fleet.keys);
    await fleet.start();
    if (this.changesTerms && natsPort) this.#changing = await ChangingTerms.begin(fleet, policy, natsPort);
    return fleet;
  }

  /** A fleet with a Redis of its own. */
  async fleetOnRedis(
    options: Partial<FleetOptions> = {},
    redisOptions: RedisServerOptions = {},
  ): Promise<{ fleet: Fleet; redis: RedisServer }> {
    const redis = await this.redis(redisOptions);
    return { redis, fleet: await this.fleet({ ...options, redis: { kind: 'server', port: redis.port } }) };
  }

  /** Waits for the fleet to be back, lets it end, and holds what happened against the claim. */
  async conclude(fleet: Fleet, claim: Claim): Promise<Outcome> {
    const problems: string[] = [];
    const { healedAt, backWithinMs = 10_000, waitMs = WAIT_MS } = claim;
    const underTheseTerms = await this.#changing?.settled(LEASE_END_MS);
    const rate = claim.rate ?? fleet.rate * (underTheseTerms ? TIGHTENED : 1);
    let backAfterMs: Milliseconds | undefined;
    if (healedAt !== undefined) {
      try {
        backAfterMs = await fleet.back(healedAt, rate);
        if (backAfterMs > backWithinMs) problems.push(`back at 95 % only after ${Math.round(backAfterMs)} ms`);
      } catch (error) {
        problems.push((error as Error).message);
      }
    }
    const watchedFrom = underTheseTerms ? this.now() + LEASE_END_MS : (healedAt ?? this.now());
    await sleep(Math.max(0, watchedFrom + this.#watchMs - this.now()));
    const endings = await fleet.close();
    for (const { name, trouble, report } of endings) {
      if (trouble !== undefined) problems.push(`${name} ${trouble}`);
      if (report.handles.length > 0) problems.push(`${name} left ${report.handles.join(', ')}`);
      for (const reason of report.unhandledRejections) problems.push(`${name}, unhandled rejection: ${reason}`);
      if (report.longestWaitMs > waitMs) {
        problems.push(`${name} let an acquire wait for ${Math.round(report.longestWaitMs)} ms`);
      }
    }
    const reports = endings.map(({ report }) => report);
    let over = Number.NEGATIVE_INFINITY;
    const rules = typeof claim.rules === 'function' ? claim.rules(reports) : claim.rules;
    for (const rule of underTheseTerms ? rules.map(underTheseTerms) : rules) {
      const { excess, from, to, admitted } = worstWindow(fleet.admissions(), rule);
      over = Math.max(over, excess);
      if (excess <= (rule.extra ?? 0) + ROUNDING) continue;
      const window = `${admitted} in ${(to - from).toFixed(1)} ms, begun ${(from - fleet.startedAt).toFixed(1)} ms in`;
      problems.push(`${rule.what}: ${excess.toFixed(3)} over, ${rule.extra ?? 0} allowed (${window})`);
    }
    return {
      over,
      backAfterMs,
      longestWaitMs: Math.max(0, ...reports.map((report) => report.longestWaitMs)),
      unhandledRejections: reports.reduce((sum, report) => sum + report.unhandledRejections.length, 0),
      reports,
      problems,
    };
  }

  async dispose(): Promise<void> {
    for (const cleanup of this.#cleanups.reverse()) await cleanup();
  }
}

/** The same outcome with one more thing that was not as it should be. */
export function withProblem(outcome: Outcome, problem: string): Outcome {
  return { ...outcome, problems: [...outcome.problems, problem] };
}

/** No window at all may be over. */
export function never(fleet: Fleet, extra: Tokens = 0): WindowRule {
  return { what: 'any window', ratePerSecond: fleet.rate, burst: fleet.burst, extra };
}

/**
 * What holds when the store lost what it knew at `lostAt`: nothing over in windows that begin before, or once the leases
 * of that moment have ended; between the two, what was in wallets that the new store has not heard of yet.
 */
export function afterStoreLoss(fleet: Fleet, lostAt: Milliseconds): [WindowRule, WindowRule, WindowRule] {
  const terms = { ratePerSecond: fleet.rate, burst: fleet.burst };
  return [
    { ...terms, what: 'begun before the loss', beginsBefore: lostAt },
    {
      ...terms,
      what: 'begun within a lease of the loss',
      beginsFrom: lostAt,
      beginsBefore: lostAt + LEASE_END_MS,
      extra: unregistered(fleet),
    },
    { ...terms, what: 'begun a lease after the loss', beginsFrom: lostAt + LEASE_END_MS },
  ];
}

/** min(U, R × lease): what wallets may hold that a store without its data does not know of. */
export function unregistered(fleet: Fleet): Tokens {
  return Math.min(fleet.burst, (fleet.rate * LEASE_END_MS) / 1_000);
}
