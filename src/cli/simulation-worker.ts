import { parentPort, workerData } from 'node:worker_threads';
import { InvalidScenarioError, simulate } from '../simulation/index.js';
import type { WorkerMessage } from './worker-simulation.js';

const tell = (message: WorkerMessage): void => parentPort?.postMessage(message);

try {
  const report = await simulate(workerData, { onProgress: (progress) => tell({ progress }) });
  tell({ report });
} catch (error) {
  if (!(error instanceof InvalidScenarioError)) throw error;
  tell({ fault: { path: error.path, message: error.message } });
}
