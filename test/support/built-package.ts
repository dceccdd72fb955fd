import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'vite';

const run = promisify(execFile);

/** What a child process came to. */
export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * The package as it stands in `src`, made into modules that a plain Node can load, for tests of what only a process of
 * its own can show. Removed by `remove`.
 */
export class BuiltPackage {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async build(): Promise<BuiltPackage> {
    const folder = await mkdtemp(join(tmpdir(), 'headgate-built-'));
    const entry = (name: string) => fileURLToPath(new URL(`../../src/${name}.ts`, import.meta.url));
    await build({
      configFile: false,
      logLevel: 'error',
      build: {
        ssr: true,
        outDir: folder,
        emptyOutDir: false,
        minify: false,
        target: 'node20',
        rollupOptions: {
          input: { index: entry('index'), testing: entry('testing') },
          output: { entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs', format: 'es' },
        },
      },
    });
    return new BuiltPackage(folder);
  }

  /** Runs a module that finds the package under `headgate`, and waits for the process to end. */
  async run(source: string, flags: readonly string[] = []): Promise<Outcome> {
    const file = join(this.#folder, `child-${Math.random().toString(36).slice(2)}.mjs`);
    const index = pathToFileURL(join(this.#folder, 'index.mjs')).href;
    await writeFile(file, source.replaceAll(`'headgate'`, JSON.stringify(index)));
    try {
      const { stdout, stderr } = await run(process.execPath, [...flags, file], { timeout: 20_000 });
      return { code: 0, stdout, stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code?: number; stdout: string; stderr: string };
      return { code: code ?? -1, stdout, stderr };
    }
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
