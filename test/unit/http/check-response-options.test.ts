import { expect, it } from 'vitest';
import { InvalidOptionError } from '../../../src/errors.js';
import { checkResponseOptions, type ResponseOptions } from '../../../src/http/index.js';

it.each<ResponseOptions>([
  {},
  { headers: 'legacy' },
  { headers: ['draft-10', 'legacy'] },
  { headers: [] },
  { partition: true, maxRetryAfterSeconds: 60, jitterMs: 500 },
])('takes %j', (options) => {
  expect(() => checkResponseOptions(options)).not.toThrow();
});

it.each([
  [{ headers: 'draft-9' }, 'got "draft-9"'],
  [{ headers: ['draft-10', 'draft-8'] }, 'got draft-10 and draft-8: they write the same fields'],
  [{ headers: ['legacy', 'legacy'] }, 'got legacy and legacy'],
  [{ partition: 'yes' }, 'Expected `partition`'],
  [{ maxRetryAfterSeconds: 0 }, 'Expected `maxRetryAfterSeconds`'],
  [{ maxRetryAfterSeconds: 1.5 }, 'got 1.5'],
  [{ jitterMs: -1 }, 'Expected `jitterMs`'],
  [{ jitterMs: Number.NaN }, 'got NaN'],
])('refuses %j: %s', (options, message) => {
  expect(() => checkResponseOptions(options as ResponseOptions)).toThrow(InvalidOptionError);
  expect(() => checkResponseOptions(options as ResponseOptions)).toThrow(message);
});
