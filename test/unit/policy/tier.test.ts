import { describe, expect, it } from 'vitest';
import { InvalidPolicyError } from '../../../src/errors.js';
import { Fields } from '../../../src/policy/fields.js';
import { readTier, type Tier } from '../../../src/policy/tier.js';

function read(ceiling: unknown): Tier | undefined {
  return readTier(Fields.read({ ceiling }, '', ' (policy "api")'), 'ceiling');
}

function messageOf(ceiling: unknown): string {
  try {
    read(ceiling);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidPolicyError);
    return (error as Error).message;
  }
  throw new Error('Nothing was thrown');
}

const ALGORITHMS = '"token-bucket", "leaky-bucket", "fixed-window", "sliding-window-log", "sliding-window-counter"';
const AMOUNT = 'a positive number with at most 6 decimals';
const PERIOD = "a period such as '1s', '500ms', '15m', '1h', '30d', or a number of ms, in whole microseconds";
const HOUR_US = 3_600_000_000;
const fixed = { algorithm: 'fixed-window', limit: 60, window: '1m' };
const log = { algorithm: 'sliding-window-log', limit: 60, window: '1m' };
const leaky = { algorithm: 'leaky-bucket', rate: 10, queue: 20 };

describe('a tier', () => {
  it.each<[object, object, object, object]>([
    [
      leaky,
      leaky,
      { algorithm: 'leaky-bucket', queue: 20, ratePerMs: 0.01, burst: 20 },
      { algorithm: 'leaky-bucket', queue: 20, burst: 20_000_000, rateNum: 10, rateDen: 1 },
    ],
    [
      { algorithm: 'leaky-bucket', rate: 6, per: '1m', queue: 0 },
      { algorithm: 'leaky-bucket', rate: 6, per: '1m', queue: 0 },
      { algorithm: 'leaky-bucket', queue: 0, ratePerMs: 0.0001, burst: 1 },
      { algorithm: 'leaky-bucket', queue: 0, burst: 1_000_000, rateNum: 1, rateDen: 10 },
    ],
    [
      fixed,
      fixed,
      { algorithm: 'fixed-window', windows: { by: 'epoch', length: HOUR_US / 60 }, ratePerMs: 0.001, burst: 60 },
      {
        algorithm: 'fixed-window',
        windows: { by: 'epoch', length: HOUR_US / 60 },
        burst: 60_000_000,
        rateNum: 1,
        rateDen: 1,
      },
    ],
    [
      { ...fixed, align: 'first-use' },
      { ...fixed, align: 'first-use' },
      { windows: { by: 'first-use', length: HOUR_US / 60 } },
      { windows: { by: 'first-use', length: HOUR_US / 60 } },
    ],
    [
      { ...fixed, window: 'month', timeZone: 'Europe/Berlin', align: 'calendar' },
      { ...fixed, window: 'month', timeZone: 'Europe/Berlin', align: 'calendar' },
      { windows: { by: 'calendar', unit: 'month', timeZone: 'Europe/Berlin', length: 30 * 24 * HOUR_US } },
      { burst: 60_000_000, rateNum: 1, rateDen: 43_200 },
    ],
    [
      { ...fixed, window: 'week' },
      { ...fixed, window: 'week' },
      { windows: { by: 'calendar', unit: 'week', timeZone: 'UTC', length: 7 * 24 * HOUR_US } },
      {},
    ],
    [
      log,
      log,
      { algorithm: 'sliding-window-log', length: HOUR_US / 60, ratePerMs: 0.001, burst: 60 },
      { algorithm: 'sliding-window-log', length: HOUR_US / 60, burst: 60_000_000, rateNum: 1, rateDen: 1 },
    ],
    [
      { ...log, algorithm: 'sliding-window-counter', window: 1_500 },
      { ...log, algorithm: 'sliding-window-counter', window: 1_500 },
      { algorithm: 'sliding-window-counter', length: 1_500_000, ratePerMs: 0.04, burst: 60 },
      { rateNum: 40, rateDen: 1 },
    ],
    [
      { algorithm: 'token-bucket', rate: 1, burst: 2 },
      { algorithm: 'token-bucket', rate: 1, burst: 2 },
      { algorithm: 'token-bucket', ratePerMs: 0.001, burst: 2 },
      {},
    ],
  ])('%o', (given, document, local, ceiling) => {
    const tier = read(given);
    expect(tier?.document).toEqual(document);
    expect(tier?.local).toMatchObject(local);
    expect(tier?.ceiling).toMatchObject(ceiling);
    expect(Object.isFrozen(tier?.document) && Object.isFrozen(tier?.local) && Object.isFrozen(tier?.ceiling)).toBe(
      true,
    );
  });

  it.each<[object, string]>([
    [{ algorithm: 'gcra' }, `Expected \`ceiling.algorithm\` to be one of ${ALGORITHMS}, got "gcra".`],
    [{ ...fixed, rate: 1 }, 'to have no fields but algorithm, limit, window, timeZone, align, got "rate".'],
    [{ ...log, align: 'first-use' }, 'to have no fields but algorithm, limit, window, got "align".'],
    [{ ...leaky, burst: 1 }, 'to have no fields but algorithm, rate, per, queue, got "burst".'],
    [{ ...fixed, limit: 0 }, `Expected \`ceiling.limit\` to be ${AMOUNT}, got 0.`],
    [{ ...log, limit: 1e10 }, 'Expected `ceiling.limit` to be below 2^53 millionths (9007199254.74 tokens)'],
    [{ ...leaky, queue: -1 }, 'Expected `ceiling.queue` to be a number from 0 with at most 6 decimals, got -1.'],
    [
      { ...leaky, queue: undefined },
      'Expected `ceiling.queue` to be a number from 0 with at most 6 decimals, got undefined.',
    ],
    [{ ...leaky, rate: undefined }, `Expected \`ceiling.rate\` to be ${AMOUNT}, got undefined.`],
    [
      { ...fixed, window: 'year' },
      `Expected \`ceiling.window\` to be ${PERIOD}, or "day", "week" or "month", got "year".`,
    ],
    [{ ...fixed, window: undefined }, `Expected \`ceiling.window\` to be ${PERIOD}, or "day"`],
    [{ ...log, window: 'day' }, `Expected \`ceiling.window\` to be ${PERIOD}, got "day".`],
    [
      { ...fixed, timeZone: 'UTC' },
      'Expected `ceiling.timeZone` to be left out, where `window` is a length, got "UTC".',
    ],
    [
      { ...fixed, window: 'day', timeZone: 'Mars/Phobos' },
      'Expected `ceiling.timeZone` to be a name of the IANA time zone data, such as \'Europe/Berlin\', got "Mars/Phobos".',
    ],
    [{ ...fixed, window: 'day', timeZone: '+02:00' }, 'Expected `ceiling.timeZone` to be a name of the IANA'],
    [
      { ...fixed, window: 'day', align: 'first-use' },
      'Expected `ceiling.align` to be "calendar", where `window` is a part of the calendar, got "first-use".',
    ],
    [{ ...fixed, align: 'now' }, 'Expected `ceiling.align` to be one of "calendar", "first-use", got "now".'],
    [
      { ...log, limit: 1_000_000, window: 4_503_599_627_370.497 },
      'to be such that limit × 10⁶ over `window` in µs reduces to whole numbers below 2^52',
    ],
  ])('%o is refused', (given, message) => {
    expect(messageOf(given)).toContain(message);
  });
});
