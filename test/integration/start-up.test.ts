import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

describe('what is built', () => {
  it('loads two files for all that every limiter needs, and ASCII in them', () => {
    const loaded = new Set([new URL('../../dist/index.js', import.meta.url).href]);
    for (const file of loaded)
      for (const [, path] of readFileSync(fileURLToPath(file), 'utf8').matchAll(
        /^(?:import|export) .*? from "(\.[^"]+)";$/gm,
      ))
        loaded.add(new URL(path as string, file).href);

    expect([...loaded].map((file) => file.split('/dist/')[1])).toEqual(['index.js', 'chunk/core.js']);
    for (const file of loaded) expect(readFileSync(fileURLToPath(file), 'utf8')).not.toMatch(/[\u0080-\uffff]/);
  });
});
