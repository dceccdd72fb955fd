import { describe, expect, it } from 'vitest';
import { read } from './source-tree.js';

interface Page {
  readonly from: string;
  /** Where the package declares its options, below `node_modules`, and under which names. */
  readonly types: string;
  readonly options: readonly string[];
  /** The version the page says it was checked against. */
  readonly version: string;
}

const PAGES: readonly Page[] = [
  { from: 'express-rate-limit', types: 'express-rate-limit/dist/index.d.ts', options: ['Options'] },
  {
    from: 'fastify-rate-limit',
    types: '@fastify/rate-limit/types/index.d.ts',
    options: ['CreateRateLimitOptions', 'RateLimitOptions', 'RateLimitPluginOptions'],
  },
  {
    from: 'rate-limiter-flexible',
    types: 'rate-limiter-flexible/types.d.ts',
    options: [
      'IRateLimiterOptions',
      'IRateLimiterStoreOptions',
      'IRateLimiterRedisOptions',
      'IRateLimiterClusterOptions',
      'IRateLimiterQueueOpts',
    ],
  },
  { from: 'bottleneck', types: 'bottleneck/bottleneck.d.ts', options: ['ConstructorOptions', 'JobOptions'] },
  { from: 'limiter', types: 'limiter/dist/esm/RateLimiter.d.ts', options: ['RateLimiterOpts'] },
  { from: 'limiter', types: 'limiter/dist/esm/TokenBucket.d.ts', options: ['TokenBucketOpts'] },
].map((page) => ({ ...page, version: versionOf(page.types) }));

function versionOf(types: string): string {
  const folder = types.split('/').slice(0, types.startsWith('@') ? 2 : 1);
  return JSON.parse(read(`node_modules/${folder.join('/')}/package.json`)).version;
}

/** The names of the fields of a type or interface in a file of declarations. */
function fieldsOf(declarations: string, name: string): string[] {
  const start = new RegExp(`^([ \\t]*)(?:export |declare )*(?:type|interface) ${name}\\b[^{]*{`, 'm').exec(
    declarations,
  );
  if (!start) return [];
  const body = declarations.slice(start.index + start[0].length);
  const end = body.search(new RegExp(`^${start[1]}}`, 'm'));
  const lines = body.slice(0, end).split('\n');
  const indents = lines.map(
    (line) => /^([ \t]+)(?:readonly )?\w+\??:/.exec(line)?.[1]?.length ?? Number.POSITIVE_INFINITY,
  );
  const least = Math.min(...indents);
  return lines.filter((_, i) => indents[i] === least).map((line) => /(\w+)\??:/.exec(line)?.[1] as string);
}

/** What the first column of the tables names. */
function namedIn(page: string): Set<string> {
  const cells = [...page.matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, cell]) => [
    ...(cell as string).matchAll(/`(\w+)[^`]*`/g),
  ]);
  return new Set(cells.map(([, name]) => name as string));
}

describe.each(PAGES)('docs/migrating/$from.md', ({ from, types, options, version }) => {
  const page = read(`docs/migrating/${from}.md`);

  it('has a row for each option of the package', () => {
    const named = namedIn(page);
    for (const name of options) {
      const fields = fieldsOf(read(`node_modules/${types}`), name);
      expect(fields.length, name).toBeGreaterThan(0);
      expect(fields.filter((field) => !named.has(field))).toEqual([]);
    }
  });

  it('says against which version it was checked', () => {
    expect(page).toContain(`${version}.`);
  });
});
