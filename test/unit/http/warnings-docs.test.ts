import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { SETUP_WARNINGS, SetupWarnings } from '../../../src/middleware/setup-warnings.js';

it('docs/reference/warnings.md has a section for each warning, in their order, and for nothing else', () => {
  const page = readFileSync(new URL('../../../docs/reference/warnings.md', import.meta.url), 'utf8');
  expect([...page.matchAll(/^## (.+)$/gm)].map(([, code]) => code)).toEqual(Object.keys(SETUP_WARNINGS));
});

it('a warning is one of the process where nobody else listens, once for each kind', async () => {
  const warnings = new SetupWarnings();
  const emitted = new Promise<Error & { code?: string }>((resolve) => process.once('warning', resolve));
  warnings.tell('HEADGATE_COUNTED_TWICE');
  warnings.tell('HEADGATE_COUNTED_TWICE');
  expect(await emitted).toMatchObject({
    name: 'HeadgateWarning',
    code: 'HEADGATE_COUNTED_TWICE',
    message: SETUP_WARNINGS.HEADGATE_COUNTED_TWICE,
  });
});
