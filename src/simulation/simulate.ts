import type { Milliseconds } from '../units.js';
import { Caller } from './caller.js';
import { EventQueue } from './event-queue.js';
import { scheduleEvents } from './faults.js';
import { Instance, type World } from './instance.js';
import { Network } from './network.js';
import { type Plan, parseScenario } from './parse-scenario.js';
import { PolicyFeed } from './policy-feed.js';
import { Dice } from './random.js';
import { Recorder } from './recorder.js';
import { StoreServer } from './remote-ceiling.js';
import { type Report, reportOf } from './report.js';
import type { Scenario } from './scenario.js';

/** Options of {@link simulate}. */
export interface SimulateOptions {
  /** Told now and then how far the run is. */
  readonly onProgress?: (progress: Progress) => void;
  /** Ends the run: the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface Progress {
  /** Virtual time gone by, and in all. */
  readonly atMs: Milliseconds;
  readonly durationMs: Milliseconds;
}

/** How long a run goes on before the process's own event loop gets a turn. */
const TURN_MS: Milliseconds = 50;
/** After how many events the real clock is looked at. */
const EVENTS_A_LOOK = 4_096;

/**
 * Runs a whole fleet on virtual time: real limiters, keepers and ledger, with a simulated clock and network below them.
 *
 *     const report = await simulate({
 *       duration: '60s',
 *       policies: [{ name: 'api', ceiling: { rate: 1000, burst: 1000 } }],
 *       fleet: [
 *         { name: 'heavy', instances: 1, traffic: { rate: 5000 } },
 *         { name: 'light', instances: 19, traffic: { rate: 20 } },
 *       ],
 *       events: [{ at: '30s', kind: 'crash', instances: 5, restartAfter: '2s' }],
 *     });
 *     report.buckets[0].utilisation; // 0.99
 *
 * The same scenario with the same seed gives the same report, to the last digit.
 *
 * @throws InvalidScenarioError where the scenario is not what was expected
 */
export async function simulate(scenario: Scenario, options: SimulateOptions = {}): Promise<Report> {
  const plan = parseScenario(scenario);
  const failures: unknown[] = [];
  const world = newWorld(plan, (error) => failures.push(error));
  const instances = populate(world);
  scheduleEvents(world, instances, new Dice(plan.seed, 'events'));
  await run(world, failures, options);
  return reportOf(world, instances);
}

function newWorld(plan: Plan, failed: (error: unknown) => void): World {
  const { seed, network, newStore, policies } = plan;
  const queue = new EventQueue();
  return {
    plan,
    queue,
    failed,
    starting: new Set(),
    recorder: new Recorder(plan),
    server: new StoreServer(queue, new Dice(seed, 'store'), newStore),
    network: new Network(queue, new Dice(seed, 'network'), network),
    feed: new PolicyFeed(
      queue,
      new Dice(seed, 'feed'),
      network.policyDelayMs,
      policies.map(({ document }) => document),
    ),
  };
}

function populate(world: World): readonly Instance[] {
  const { plan, queue, recorder } = world;
  return plan.groups.flatMap((group, index) =>
    Array.from({ length: group.instances }, (_, place) => {
      const name = `${group.name}/${place + 1}`;
      const instance = new Instance(world, group, name, new Dice(plan.seed, name));
      instance.start();
      for (const [number, traffic] of group.traffic.entries()) {
        const tally = recorder.groups[index];
        if (!tally) continue;
        const share = traffic.keys > 0 ? undefined : recorder.share(traffic.policy, traffic.key, name, group.weight);
        const dice = new Dice(plan.seed, `${name}/traffic ${number + 1}`);
        new Caller({ queue, recorder, instance, group: tally, traffic, dice, share });
      }
      return instance;
    }),
  );
}

/**
 * Runs all events of the plan. After each that may have settled a promise, everything that follows from it is done before
 * the next: processes that are being started run, and `process.nextTick` called from a promise comes when no promise has
 * anything left to do.
 */
function run(world: World, failures: readonly unknown[], options: SimulateOptions): Promise<void> {
  const { queue, starting } = world;
  const until = world.plan.durationMs;
  const { onProgress, signal } = options;
  return new Promise((resolve, reject) => {
    let turnBegan = performance.now();
    let events = 0;
    const step = (): void => {
      try {
        while (failures.length === 0 && queue.next < until) {
          const settles = queue.run();
          if (++events % EVENTS_A_LOOK === 0 && performance.now() - turnBegan > TURN_MS) {
            signal?.throwIfAborted();
            onProgress?.({ atMs: queue.now, durationMs: until });
            setImmediate(() => {
              turnBegan = performance.now();
              step();
            });
            return;
          }
          if (settles) {
            queueMicrotask(drained);
            return;
          }
        }
        if (failures.length > 0) reject(failures[0]);
        else resolve();
      } catch (error) {
        reject(error);
      }
    };
    const drained = (): void => {
      if (starting.size > 0) void Promise.all(starting).then(drained);
      else process.nextTick(step);
    };
    drained();
  });
}
