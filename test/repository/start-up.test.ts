import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle } from './bundle.js';

/** What a process has loaded by its first decision. */
interface Loaded {
  /** Node's own modules, as `process.moduleLoadList` names them. */
  readonly internals: readonly string[];
  /** Modules of src. */
  readonly modules: readonly string[];
}

describe('a process that decides for the first time', () => {
  let dir: string;
  let modulesOf: ReadonlyMap<string, readonly string[]>;

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'headgate-start-up-'));
    const chunks = await bundle("export { createLimiter } from './index.js';");
    for (const { fileName, code } of chunks)
      writeFileSync(join(dir, fileName), `${code}\n(globalThis.chunks ??= []).push(${JSON.stringify(fileName)});`);
    writeFileSync(join(dir, 'package.json'), JSON.stringify({ type: 'module' }));
    modulesOf = new Map(chunks.map(({ fileName, modules }) => [fileName, modules]));
  }, 60_000);

  afterAll(() => rmSync(dir, { recursive: true }));

  /** @param policy and `options`, both as they are written */
  function load(policy: string, options = ''): Loaded {
    const script = `
      const before = new Set(process.moduleLoadList);
      const { createLimiter } = await import('./size-entry.js');
      const limiter = await createLimiter({ policies: [{ name: 'api', ${policy} }], telemetry: false, ${options} });
      if (!limiter.policy('api').tryAcquire('tenant-1')) throw new Error('denied');
      const internals = process.moduleLoadList.filter((name) => !before.has(name));
      console.log(JSON.stringify({ internals, chunks: globalThis.chunks }));
      await limiter.close();`;
    const answer = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: dir,
      encoding: 'utf8',
    });
    const { internals, chunks } = JSON.parse(answer) as { internals: string[]; chunks: string[] };
    const modules = chunks.flatMap((name) => modulesOf.get(name) ?? []);
    return { internals, modules: modules.flatMap((id) => /\/src\/(.+)\.ts$/.exec(id)?.[1] ?? []) };
  }

  it('has not loaded the crypto of Node, nor streams, where its ceilings are its own', () => {
    const { internals } = load('local: { rate: 9, burst: 9 }, ceiling: { rate: 9, burst: 9 }');

    expect(internals.filter((name) => /crypto|stream|\bhttps?\b|\bnet\b/.test(name))).toEqual([]);
    // Or the list would say nothing.
    expect(internals.length).toBeGreaterThan(0);
  });
});
