import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { HEADER_DIALECTS } from '../../../src/http/index.js';
import { GATE_OPTIONS } from '../../../src/middleware/gate-options.js';
import { OUTBOUND_OPTIONS } from '../../../src/outbound/outbound-gate.js';

/** The first column of the table whose head begins with `head`. */
function rowsOf(page: string, head: string): string[] {
  const text = readFileSync(new URL(`../../../docs/${page}`, import.meta.url), 'utf8');
  const table = text.slice(text.indexOf(head)).split('\n\n')[0] as string;
  return [...table.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name as string);
}

it('the docs have a row for each option and each dialect, and for nothing else', () => {
  expect(rowsOf('http.md', '| option | type |')).toEqual([...GATE_OPTIONS]);
  expect(rowsOf('http.md', '| dialect |')).toEqual([...HEADER_DIALECTS]);
  expect(rowsOf('outbound.md', '| option | type |')).toEqual([...OUTBOUND_OPTIONS]);
});
