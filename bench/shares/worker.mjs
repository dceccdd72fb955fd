// Runs one scenario of the shares benchmark in a thread of its own.
import { parentPort, workerData } from 'node:worker_threads';
import { simulationWith } from './with-rule.mjs';

const { scenario, rule } = workerData;
const { simulate } = rule === undefined ? await import('headgate/simulation') : await simulationWith(rule);
const began = performance.now();
const report = await simulate(scenario, {
  onProgress: ({ atMs, durationMs }) => parentPort.postMessage({ progress: atMs / durationMs }),
});
parentPort.postMessage({ report, speed: report.durationMs / (performance.now() - began) });
