import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** The instance as one program that plain `node` runs, made from src as it is now: no process waits for a compiler. */
export async function bundleInstance(): Promise<{ program: string; remove: () => Promise<void> }> {
  // Inside node_modules, so that the clients it leaves out are found, and nobody takes it for ours.
  const folder = join(root, 'node_modules', '.cache', `headgate-chaos-${process.pid}`);
  await mkdir(folder, { recursive: true });
  await build({
    root,
    configFile: false,
    logLevel: 'error',
    build: {
      ssr: fileURLToPath(new URL('./main.ts', import.meta.url)),
      outDir: folder,
      emptyOutDir: true,
      minify: false,
      target: 'node20',
      rolldownOptions: { output: { entryFileNames: 'instance.mjs', chunkFileNames: '[name]-[hash].mjs' } },
    },
  });
  return {
    program: join(folder, 'instance.mjs'),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
