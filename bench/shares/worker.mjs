// Runs one scenario of the shares benchmark in a thread of its own.
import { existsSync } from 'node:fs';
import { register } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';

const { scenario, rule } = workerData;
if (rule !== undefined) {
  const replacement = new URL(`rules/${rule}.mjs`, import.meta.url);
  if (!existsSync(replacement)) throw new Error(`Expected --rule to be a file of bench/shares/rules, got ${rule}.`);
  // The production code has no seam for this: another module is loaded in the place of its allotment.
  register(new URL('replace-allotment.mjs', import.meta.url), { data: { replacement: replacement.href } });
}
const { simulate } = await import('../../dist/simulation/index.js');
const began = performance.now();
const report = await simulate(scenario, {
  onProgress: ({ atMs, durationMs }) => parentPort.postMessage({ progress: atMs / durationMs }),
});
parentPort.postMessage({ report, speed: report.durationMs / (performance.now() - began) });
