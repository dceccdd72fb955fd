import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'rolldown';
import { root } from './source-tree.js';

/** A file that a bundler makes of an application which imports this package. */
export interface Chunk {
  readonly fileName: string;
  readonly code: string;
  readonly modules: readonly string[];
  /** Loaded together with the entry. */
  readonly eager: boolean;
}

/**
 * Bundles `entry`, a module as it would stand in src/, with all peers left out. What is loaded with it is one chunk, as in
 * the published files.
 */
export async function bundle(entry: string): Promise<readonly Chunk[]> {
  const virtual = join(root, 'src', 'size-entry.ts');
  const { peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const peers = Object.keys(peerDependencies);
  const eagerIds = new Set<string>();
  const { output } = await build({
    input: virtual,
    write: false,
    platform: 'node',
    external: (id) => id.startsWith('node:') || peers.some((peer) => id.startsWith(peer)),
    plugins: [
      {
        name: 'size-entry',
        resolveId: (id) => (id === virtual ? id : null),
        load: (id) => (id === virtual ? entry : null),
        buildEnd() {
          eagerIds.add(virtual);
          for (const id of eagerIds) for (const next of this.getModuleInfo(id)?.importedIds ?? []) eagerIds.add(next);
        },
      },
    ],
    transform: { target: 'es2023' },
    output: { minify: true, codeSplitting: { groups: [{ name: 'core', test: (id) => eagerIds.has(id) }] } },
  });
  const made = output.filter((file) => file.type === 'chunk');
  const eager = new Set(made.filter(({ isEntry }) => isEntry).map(({ fileName }) => fileName));
  for (const name of eager)
    for (const next of made.find(({ fileName }) => fileName === name)?.imports ?? []) eager.add(next);
  return made.map(({ fileName, code, moduleIds }) => ({
    fileName,
    code,
    modules: moduleIds.map((id) => id.replaceAll('\\', '/')),
    eager: eager.has(fileName),
  }));
}
