import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { histories } from '../../support/fleet/histories/index.js';

it('docs/guarantees.md names every history under its rule', () => {
  const page = readFileSync(new URL('../../../docs/guarantees.md', import.meta.url), 'utf8');
  const missing = histories.filter(({ rule, shows }) => {
    const row = page.split('\n').find((line) => line.startsWith(`| ${rule} |`));
    return !row?.includes(shows);
  });

  expect(histories.length).toBeGreaterThan(40);
  expect(missing.map(({ rule, shows }) => `${rule}: ${shows}`)).toEqual([]);
});
