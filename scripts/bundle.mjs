// Makes the JavaScript of dist from src: what is loaded together lies in one file, as a process pays for each file it
// loads and much less for what is in it (docs/decisions/one-file-for-what-is-loaded-together.md). The declarations beside
// it are tsc's.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SRC = join(ROOT, 'src');
const { bin, exports, peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/** Files that are started, or asked for by name, and belong to no entry of the package. */
const OTHERS = [
  'cli/simulation-worker',
  'demo/main',
  // A test runs the demo with a part of it replaced.
  'demo/cli',
  'demo/replay-verdict',
  'demo/verdict',
  'demo/worker',
  // The benchmark `ceiling` measures it by itself.
  'ceiling/redis-ceiling',
];

/** What the programs of the demo share. Beside the worker, which it starts by its path. */
const DEMO = 'demo/parts';

const published = [...Object.values(exports).map((entry) => entry.default), ...Object.values(bin)];
const names = published.flatMap((file) => /dist\/(.+)\.js$/.exec(file ?? '')?.[1] ?? []).concat(OTHERS);
const peers = Object.keys(peerDependencies);

/** What every limiter needs. */
const core = new Set();

/** Follows what `id` imports, but for what is loaded only when asked for somewhere. */
function addToCore(id, module) {
  const { importedIds, dynamicImporters } = module(id) ?? {};
  if (core.has(id) || dynamicImporters?.length > 0) return;
  core.add(id);
  for (const next of importedIds ?? []) addToCore(next, module);
}

await build({
  cwd: ROOT,
  input: Object.fromEntries(names.map((name) => [name, join(SRC, `${name}.ts`)])),
  platform: 'node',
  preserveEntrySignatures: 'allow-extension',
  external: (id) => peers.some((peer) => id === peer || id.startsWith(`${peer}/`)),
  plugins: [
    {
      name: 'core',
      buildEnd() {
        addToCore(join(SRC, 'index.ts'), (id) => this.getModuleInfo(id));
      },
    },
  ],
  transform: { target: 'node20.19' },
  checks: { ineffectiveDynamicImport: false },
  output: {
    dir: join(ROOT, 'dist'),
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: ({ name }) => (name === DEMO ? '[name].js' : 'chunk/[name].js'),
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        { name: 'core', test: (id) => core.has(id) },
        { name: DEMO, test: /\/src\/demo\/(?!main|worker)/ },
      ],
    },
  },
});
