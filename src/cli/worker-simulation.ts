import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Progress, Report, Scenario } from '../simulation/index.js';
import type { JsonPath } from './positioned-json.js';

/** What a worker tells of its run. */
export type WorkerMessage =
  | { readonly progress: Progress }
  | { readonly report: Report }
  | { readonly fault: { readonly path: JsonPath; readonly message: string } };

/** A scenario is not what was expected; as `InvalidScenarioError`, from another thread. */
export class ScenarioFault extends Error {
  override readonly name = 'ScenarioFault';
  readonly path: JsonPath;

  constructor(path: JsonPath, message: string) {
    super(message);
    this.path = path;
  }
}

/**
 * Most of what a simulation allocates is gone at once; with more room for it than Node gives by itself, the collector
 * runs half as often and copies a third as much.
 */
const YOUNG_GENERATION_MB = 192;

/**
 * Runs a scenario once for each seed, as many at a time as there are cores; answers the reports in the seeds' order.
 *
 * @param progress told how much is done, 0 to 1, and how much of the fleet's time has gone by, over all runs
 * @throws ScenarioFault
 */
export async function simulateSeeds(
  scenario: Scenario,
  seeds: readonly (number | undefined)[],
  progress: (done: number, virtualMs: number) => void,
): Promise<Report[]> {
  const reports: Report[] = [];
  const atMs = seeds.map(() => 0);
  const workers = new Set<Worker>();
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < seeds.length; index = next++) {
      const seed = seeds[index];
      const own = seed === undefined ? scenario : { ...scenario, seed };
      reports[index] = await simulateInWorker(own, workers, (run) => {
        atMs[index] = run.atMs;
        const sum = atMs.reduce((total, ms) => total + ms, 0);
        progress(sum / (run.durationMs * seeds.length), sum);
      });
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(seeds.length, availableParallelism()) }, work));
  } finally {
    // Where one has failed, the others need not go on.
    for (const worker of workers) void worker.terminate();
  }
  return reports;
}

function simulateInWorker(
  scenario: Scenario,
  workers: Set<Worker>,
  progress: (progress: Progress) => void,
): Promise<Report> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./simulation-worker.js', import.meta.url), {
      workerData: scenario,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    workers.add(worker);
    worker.on('message', (message: WorkerMessage) => {
      if ('progress' in message) progress(message.progress);
      else if ('report' in message) resolve(message.report);
      else reject(new ScenarioFault(message.fault.path, message.fault.message));
    });
    worker.once('error', reject);
    worker.once('exit', (code) => {
      workers.delete(worker);
      reject(new Error(`Expected a simulation to end with a report, got the exit code ${code}.`));
    });
  });
}
