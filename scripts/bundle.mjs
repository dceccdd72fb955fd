// Makes the JavaScript of dist from src: what is loaded together lies in one file, as a process pays for each file it
// loads and much less for what is in it (docs/decisions/one-file-for-what-is-loaded-together.md). The declarations beside
// it are tsc's.
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
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

/** What every limiter needs, and what one needs besides whose ceilings are in its process. */
const core = new Set();
const memoryCeiling = new Set();

/** Follows what `id` imports, but for what is loaded only when asked for somewhere. */
function addTo(group, id, module) {
  group.add(id);
  for (const next of module(id)?.importedIds ?? [])
    if (!core.has(next) && !group.has(next) && !(module(next)?.dynamicImporters.length > 0)) addTo(group, next, module);
}

const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

await build({
  cwd: ROOT,
  input: Object.fromEntries(names.map((name) => [name, join(SRC, `${name}.ts`)])),
  platform: 'node',
  preserveEntrySignatures: 'allow-extension',
  external: (id) => peers.some((peer) => id === peer || id.startsWith(`${peer}/`)),
  plugins: [
    {
      name: 'groups',
      buildEnd() {
        const module = (id) => this.getModuleInfo(id);
        addTo(core, join(SRC, 'index.ts'), module);
        addTo(memoryCeiling, join(SRC, 'ceiling/memory-ceiling.ts'), module);
      },
    },
    {
      // Of a module that others import as well, rolldown makes a second file that only passes on its names.
      name: 'no files that only pass on',
      generateBundle(_, files) {
        for (const { fileName, isDynamicEntry, code } of Object.values(files)) {
          const passed = isDynamicEntry && /^export \{ (.+) \} from "\.\/([^"]+)";\s*$/.exec(code);
          if (!passed || passed[1].includes(' as ')) continue;
          const own = join(dirname(fileName), passed[2]);
          for (const file of Object.values(files)) {
            if (file.code)
              file.code = file.code.replace(`import("./${basename(fileName)}")`, `import("./${basename(own)}")`);
          }
          delete files[fileName];
        }
      },
    },
    {
      // One character beyond Latin-1 makes two bytes of each in memory, and slower to read.
      name: 'ASCII only',
      generateBundle(_, files) {
        for (const file of Object.values(files)) {
          if (file.code) file.code = file.code.replace(/[\u0080-\uffff]/g, escaped);
        }
      },
    },
  ],
  transform: { target: 'node20.19' },
  checks: { ineffectiveDynamicImport: false },
  output: {
    dir: join(ROOT, 'dist'),
    sourcemap: true,
    minifyInternalExports: false,
    comments: { jsdoc: false, legal: false, annotation: true },
    entryFileNames: '[name].js',
    chunkFileNames: ({ name }) => (name === DEMO ? '[name].js' : 'chunk/[name].js'),
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        { name: 'core', test: (id) => core.has(id) },
        { name: 'memory-ceiling', test: (id) => memoryCeiling.has(id) },
        { name: DEMO, test: /\/src\/demo\/(?!main|worker)/ },
      ],
    },
  },
});
