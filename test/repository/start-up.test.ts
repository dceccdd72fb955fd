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

/** A ceiling store elsewhere, as options are written. */
const STORE = 'ceiling: { ready: true, lease: () => [], heartbeat: async () => 1, close: async () => {} }';

/** Of a module of src its name there. */
function nameOf(id: string): string[] {
  return /\/src\/(.+)\.ts$/.exec(id)?.slice(1) ?? [];
}

describe('a process that decides for the first time', () => {
  let dir: string;
  let modulesOf: ReadonlyMap<string, readonly string[]>;
  let eager: ReadonlySet<string>;

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'headgate-start-up-'));
    const chunks = await bundle("export { createLimiter } from './index.js';");
    for (const { fileName, code } of chunks)
      writeFileSync(join(dir, fileName), `${code}\n(globalThis.chunks ??= []).push(${JSON.stringify(fileName)});`);
    writeFileSync(join(dir, 'package.json'), JSON.stringify({ type: 'module' }));
    modulesOf = new Map(chunks.map(({ fileName, modules }) => [fileName, modules.flatMap(nameOf)]));
    eager = new Set(chunks.filter((chunk) => chunk.eager).flatMap(({ modules }) => modules.flatMap(nameOf)));
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
    return { internals, modules: chunks.flatMap((name) => modulesOf.get(name) ?? []) };
  }

  it('has not loaded the crypto of Node, nor streams, where its ceilings are its own', () => {
    const { internals } = load('local: { rate: 9, burst: 9 }, ceiling: { rate: 9, burst: 9 }');

    expect(internals.filter((name) => /crypto|stream|\bhttps?\b|\bnet\b/.test(name))).toEqual([]);
    // Or the list would say nothing.
    expect(internals.length).toBeGreaterThan(0);
  });

  it('has loaded, besides what every limiter needs, its ceilings and nothing else', () => {
    const { modules } = load('local: { rate: 9, burst: 9 }, ceiling: { rate: 9, burst: 9 }');
    const lazy = modules.filter((module) => !eager.has(module));

    expect(lazy).toContain('ceiling/ledger');
    expect(lazy.filter((module) => !module.startsWith('ceiling/'))).toEqual([]);
    expect(lazy.filter((module) => module.includes('redis'))).toEqual([]);
  });

  it.each([
    ['algorithm/meter', "local: { algorithm: 'fixed-window', limit: 9, window: '1s' }", ''],
    [
      'limiter/paced-room',
      "local: { rate: 9, burst: 9 }, overrides: { a: { ceiling: { algorithm: 'leaky-bucket', rate: 9, queue: 9 } } }",
      '',
    ],
    ['lease/call-calendar', "ceiling: { algorithm: 'fixed-window', limit: 9, window: 'day' }", ''],
    ['seat/seat-desk', 'local: { rate: 9, burst: 9 }, concurrency: { limit: 9 }', ''],
    ['telemetry/guarded-observer', 'local: { rate: 9, burst: 9 }', 'onTrouble: () => {}'],
    ['mark/mark-desk', 'local: { rate: 9, burst: 9 }', STORE],
    ['lease/fleet', 'local: { rate: 9, burst: 9 }', STORE],
  ])('has loaded %s where its policies or its store say so: nobody waits for it later', (module, policy, options) => {
    expect(eager.has(module)).toBe(false);
    expect(load(policy, options).modules).toContain(module);
  });
});
