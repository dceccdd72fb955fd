import { expect, it } from 'vitest';
import { retryAfterSeconds } from '../../../src/http/index.js';

it('Retry-After is whole, at least 1, and never early', () => {
  expect([0, 0.1, 1, 999, 1_000, 1_000.001, 59_999].map(retryAfterSeconds)).toEqual([1, 1, 1, 1, 1, 2, 60]);
});
