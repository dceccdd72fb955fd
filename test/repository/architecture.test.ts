import { describe, expect, it } from 'vitest';
import { importGraph, type Module, relativeImports } from './source-tree.js';

/** Leaves of the graph, which everything may import. */
const FOUNDATION = ['units', 'errors', 'time', 'calendar'];

/** What a policy says, as types: the words in which the tiers are told their terms. */
const VOCABULARY = [...FOUNDATION, 'policy/policy'];

/**
 * Who may import whom. A name is a module (`lease/wallet`) or a folder with all its modules (`lease`). A folder's own
 * modules may import each other, except those that have a row of their own: ports, which know nothing of their adaptors.
 * A new folder needs a row here, so that its place is decided and not found out.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  units: [],
  errors: [],
  time: ['units'],
  abort: [],
  calendar: ['units'],
  cells: [],
  line: [],
  crowd: ['time'],
  version: [],

  // Ports.
  'telemetry/observer': FOUNDATION,
  'policy/policy-source': VOCABULARY,
  'ceiling/seat-store': FOUNDATION,
  'ceiling/pace-store': FOUNDATION,
  'ceiling/mark-store': FOUNDATION,
  'ceiling/ceiling-store': [...VOCABULARY, 'ceiling/mark-store', 'ceiling/pace-store', 'ceiling/seat-store'],

  // The domain, from the bottom up.
  algorithm: VOCABULARY,
  key: FOUNDATION,
  telemetry: FOUNDATION,
  policy: [...FOUNDATION, 'telemetry/observer'],
  ceiling: [...VOCABULARY, 'telemetry/observer'],
  pace: [...VOCABULARY, 'ceiling/pace-store'],
  lease: [...VOCABULARY, 'cells', 'ceiling/ceiling-store', 'telemetry/observer'],
  mark: [...FOUNDATION, 'ceiling/mark-store', 'lease/wake-queue', 'telemetry/observer'],
  seat: [...VOCABULARY, 'abort', 'crowd', 'line', 'ceiling/seat-store', 'lease/wake-queue', 'telemetry/observer'],
  limiter: [
    ...FOUNDATION,
    'abort',
    'cells',
    'crowd',
    'line',
    'algorithm',
    'mark',
    'seat',
    'lease',
    'policy',
    'ceiling/ceiling-store',
    'ceiling/pace-store',
    'ceiling/seat-store',
    'pace',
    'telemetry/observer',
  ],

  // What can be asked of a limiter besides its methods: functions, so that nobody carries those he does not use.
  verb: [...VOCABULARY, 'algorithm', 'lease', 'limiter', 'seat'],

  // The composition root, and the public API in front of it.
  'create-limiter': [
    ...FOUNDATION,
    'version',
    'key/key-digest',
    'mark',
    'seat',
    'lease/fleet',
    'limiter',
    'ceiling',
    'policy',
    'telemetry',
  ],
  index: [
    ...FOUNDATION,
    'version',
    'create-limiter',
    'key/compound-key',
    'mark',
    'seat',
    'limiter',
    'verb',
    'ceiling',
    'policy',
    'telemetry',
  ],

  // Subpath exports and programs stand on the public API.
  testing: [...FOUNDATION, 'index', 'ceiling', 'policy'],
  cluster: [...FOUNDATION, 'index', 'ceiling', 'policy', 'telemetry/observer'],
  http: [...VOCABULARY, 'index'],
  middleware: [...FOUNDATION, 'index', 'http', 'key', 'verb'],
  outbound: [...FOUNDATION, 'index', 'http', 'verb'],
  migration: [...VOCABULARY, 'index', 'http', 'verb'],
  simulation: [...FOUNDATION, 'index', 'testing', 'ceiling', 'policy', 'http', 'verb'],

  replay: [...FOUNDATION, 'algorithm', 'ceiling/exact', 'key', 'policy'],

  // What programs show: lines on a terminal, and pages that need nothing but themselves.
  terminal: [],
  page: FOUNDATION,
  cli: [...FOUNDATION, 'version', 'index', 'policy', 'replay', 'simulation', 'terminal', 'page'],
  demo: [...FOUNDATION, 'index', 'testing', 'cluster', 'simulation', 'replay', 'terminal', 'page'],
};

const ADAPTOR = /(^|\/)(memory|redis|nats|static|cluster|ipc|open-telemetry|otel)\b/;
const MAY_CHOOSE_ADAPTORS = new Set(['create-limiter', 'index', 'testing', 'cluster', 'simulation', 'demo']);

describe('imports in src', () => {
  const graph = importGraph();

  it('are found, in every form (or the rules below would hold for nothing)', () => {
    const text = `
      import { a } from './a.js';
      import type { B } from '../b.js';
      export { c } from './c/c.js';
      export type { D } from './d.js';
      type E = import('./e.js').E;
      const f = await import('./f.js');
      import './g.js';
      import { Redis } from 'ioredis';
      // import { h } from './h.js';
    `;
    expect(relativeImports('src/lease/keeper.ts', text).sort()).toEqual(
      ['b', 'lease/a', 'lease/c/c', 'lease/d', 'lease/e', 'lease/f', 'lease/g'].sort(),
    );
    expect([...graph.values()].flat().length).toBeGreaterThan(0);
  });

  it('make no cycle, types included', () => {
    expect(findCycle(graph)).toBeUndefined();
    const knownCycle = new Map([
      ['a', ['b']],
      ['b', ['c']],
      ['c', ['b']],
    ]);
    expect(findCycle(knownCycle)).toEqual(['b', 'c', 'b']);
  });

  it('follow the arrows of MAY_IMPORT', () => {
    const broken = [...graph].flatMap(([from, imports]) =>
      imports.filter((to) => !isAllowed(from, to)).map((to) => `${from} → ${to}`),
    );
    expect(broken).toEqual([]);
    expect(isAllowed('lease/keeper', 'ceiling/ceiling-store')).toBe(true);
    expect(isAllowed('lease/keeper', 'ceiling/redis-ceiling')).toBe(false);
    expect(isAllowed('ceiling/ceiling-store', 'ceiling/ledger')).toBe(false);
  });

  it('come from modules that have a place in MAY_IMPORT', () => {
    expect([...graph.keys()].filter((module) => rowOf(module) === undefined)).toEqual([]);
  });

  it('never lead from a port to an adaptor', () => {
    const ports = [...graph.keys()].filter((module) => /-(store|source)$|\/observer$/.test(module));
    const reached = ports
      .filter((port) => !ADAPTOR.test(port))
      .flatMap((port) => [...reachable(graph, port)].filter((to) => ADAPTOR.test(to)).map((to) => `${port} → ${to}`));
    expect(ports.length).toBeGreaterThan(0);
    expect(reached).toEqual([]);
  });

  it('bring in adaptors of other folders at the composition root and the subpaths only', () => {
    const strays = [...graph].flatMap(([from, imports]) =>
      imports
        .filter((to) => ADAPTOR.test(to) && top(from) !== top(to) && !MAY_CHOOSE_ADAPTORS.has(top(from)))
        .map((to) => `${from} → ${to}`),
    );
    expect(strays).toEqual([]);
  });
});

function top(module: Module): string {
  return module.split('/')[0] ?? module;
}

/** The most exact row for a module: its own, else its folder's. */
function rowOf(module: Module): string | undefined {
  const folders = module.split('/').slice(0, -1);
  const names = [module, ...folders.map((_, index) => folders.slice(0, folders.length - index).join('/'))];
  return names.find((name) => Object.hasOwn(MAY_IMPORT, name));
}

function isAllowed(from: Module, to: Module): boolean {
  const row = rowOf(from);
  if (row === undefined) return false;
  const allowed = row === from ? MAY_IMPORT[row] : [row, ...(MAY_IMPORT[row] ?? [])];
  return (allowed ?? []).some((name) => to === name || to.startsWith(`${name}/`));
}

function reachable(graph: Map<Module, Module[]>, start: Module): Set<Module> {
  const seen = new Set<Module>();
  const open = [start];
  for (let module = open.pop(); module !== undefined; module = open.pop()) {
    for (const next of graph.get(module) ?? []) {
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(next);
    }
  }
  return seen;
}

function findCycle(graph: Map<Module, Module[]>): Module[] | undefined {
  const done = new Set<Module>();
  const path: Module[] = [];
  function visit(module: Module): Module[] | undefined {
    if (done.has(module)) return undefined;
    if (path.includes(module)) return [...path.slice(path.indexOf(module)), module];
    path.push(module);
    for (const next of graph.get(module) ?? []) {
      const cycle = visit(next);
      if (cycle !== undefined) return cycle;
    }
    path.pop();
    done.add(module);
    return undefined;
  }
  for (const module of graph.keys()) {
    const cycle = visit(module);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}
