import { expect, test } from 'vitest';
import { TotalsByPolicy } from '../../../src/telemetry/totals.js';
import { counters, readings } from './sdk.js';

test('every counter of a limiter is in the totals, and still there when it has left', () => {
  const totals = new TotalsByPolicy();
  const names = Object.keys(counters('api')).filter((name) => name !== 'policy');
  const counts = Object.fromEntries(names.map((name, index) => [name, index + 1]));
  const limiter = readings(counts);
  totals.add(limiter);
  expect(totals.read().get('api')).toMatchObject(counts);
  expect(totals.empty).toBe(false);
  totals.remove(limiter);
  expect(totals.read().get('api')).toMatchObject({ ...counts, version: undefined, keys: 0 });
  expect(totals.empty).toBe(true);
});

test('the same limiter counts once, however often it is added or removed', () => {
  const totals = new TotalsByPolicy();
  const limiter = readings({ allowed: 2 });
  totals.add(limiter);
  totals.add(limiter);
  expect(totals.read().get('api')?.allowed).toBe(2);
  totals.remove(limiter);
  totals.remove(limiter);
  expect(totals.read().get('api')?.allowed).toBe(2);
});

test('the policies of limiters that have left are kept up to a bound', () => {
  const totals = new TotalsByPolicy();
  for (let i = 0; i < 1_500; i++) {
    const limiter = readings({ policy: `policy-${i}`, allowed: 1 });
    totals.add(limiter);
    totals.remove(limiter);
  }
  expect(totals.read().size).toBe(1_000);
});
