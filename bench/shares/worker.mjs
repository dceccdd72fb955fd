// Runs one scenario of the shares benchmark in a thread of its own.
import { parentPort, workerData } from 'node:worker_threads';
import { simulate } from '../../dist/simulation/index.js';
import { rules } from './rules.mjs';

const { scenario, rule } = workerData;
if (rule !== undefined && !(rule in rules))
  throw new Error(`Expected --rule to be one of ${Object.keys(rules).join(', ')}, got ${rule}.`);
const began = performance.now();
const report = await simulate(scenario, {
  onProgress: ({ atMs, durationMs }) => parentPort.postMessage({ progress: atMs / durationMs }),
  ...(rule !== undefined && { allot: rules[rule] }),
});
parentPort.postMessage({ report, speed: report.durationMs / (performance.now() - began) });
