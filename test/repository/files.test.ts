import { describe, expect, it } from 'vitest';
import { entriesBelow, read } from './source-tree.js';

const MOST_LINES = 400;
const NAMES_THAT_SAY_NOTHING = new Set(['util', 'utils', 'helper', 'helpers', 'common', 'manager', 'managers', 'misc']);

describe('files', () => {
  it(`of source have at most ${MOST_LINES} lines`, () => {
    const sources = ['src', 'lua', 'scripts', 'bench']
      .flatMap(entriesBelow)
      .filter(({ path, isFolder }) => !isFolder && /\.(ts|mjs|lua)$/.test(path) && !path.endsWith('.generated.ts'))
      .map(({ path }) => ({ path, lines: read(path).split('\n').length - 1 }));

    expect(sources.length).toBeGreaterThan(0);
    expect(sources.filter(({ lines }) => lines > MOST_LINES)).toEqual([]);
  });

  it('and folders are named after what they are about', () => {
    const entries = entriesBelow('.');
    const nameless = entries.filter(({ path }) => {
      const name = path.slice(path.lastIndexOf('/') + 1).replace(/\..*$/, '');
      return NAMES_THAT_SAY_NOTHING.has(name);
    });

    expect(entries.length).toBeGreaterThan(0);
    expect(nameless).toEqual([]);
  });
});
