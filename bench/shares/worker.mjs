// Runs one scenario of the shares benchmark in a thread of its own.
import { parentPort, workerData } from 'node:worker_threads';
import { simulate } from '../../dist/simulation/index.js';
import { rules } from './rules.mjs';

const { scenario, rule } = workerData;
const began = performance.now();
const report = await simulate(scenario, {
  onProgress: ({ atMs, durationMs }) => parentPort.postMessage({ progress: atMs / durationMs }),
  ...(rule !== undefined && { allot: rules[rule] }),
});
parentPort.postMessage({ report, wallMs: performance.now() - began });
