import { MICRO, MICROS_PER_MS, type Microseconds, type Period, periodMs } from '../units.js';
import type { Fields } from './fields.js';
import type { CeilingTerms, LocalTerms, RateDocument } from './policy.js';

/** Numerator and denominator of a rate stay below this, so that the ledger's remainders stay below 2^53. */
const FRACTION_LIMIT = 2n ** 52n;
const AMOUNT = 'a positive number with at most 6 decimals';
const RATE_FIELDS = ['rate', 'burst', 'per'] as const;

/** One tier of a policy in every form it is needed in. */
export interface Rate {
  readonly document: RateDocument;
  readonly local: LocalTerms;
  readonly ceiling: CeilingTerms;
}

/**
 * Reads the tier under `name`. Both tiers keep the ceiling's limits, so that a limit can move from one to the other:
 * a burst below 2^53 micro-tokens, and a rate that is a fraction of whole numbers below 2^52.
 */
export function readRate(parent: Fields, name: 'local' | 'ceiling'): Rate | undefined {
  const fields = parent.nested(name)?.only(RATE_FIELDS);
  if (!fields) return undefined;
  const rate = readAmount(fields, 'rate');
  const burst = readAmount(fields, 'burst');
  if (burst.micros > Number.MAX_SAFE_INTEGER)
    throw fields.wrong('burst', 'below 2^53 millionths (9007199254.74 tokens)');
  const period = readPeriod(fields);

  const divisor = greatestCommonDivisor(rate.micros, BigInt(period));
  const numerator = rate.micros / divisor;
  const denominator = BigInt(period) / divisor;
  if (numerator >= FRACTION_LIMIT || denominator >= FRACTION_LIMIT) {
    const remedy = numerator >= FRACTION_LIMIT ? 'a smaller rate or fewer digits' : 'a shorter `per`';
    throw fields.wrong(
      'rate',
      `such that rate × 10⁶ over \`per\` in µs reduces to whole numbers below 2^52 ` +
        `(${numerator}/${denominator} does not: use ${remedy})`,
    );
  }
  const per = fields.get('per') as Period | undefined;
  return Object.freeze({
    document: Object.freeze({ rate: rate.tokens, burst: burst.tokens, ...(per !== undefined && { per }) }),
    local: Object.freeze({ ratePerMs: rate.tokens / (period / MICROS_PER_MS), burst: burst.tokens }),
    ceiling: Object.freeze({
      burst: Number(burst.micros),
      rateNum: Number(numerator),
      rateDen: Number(denominator),
    }),
  });
}

function readAmount(fields: Fields, name: 'rate' | 'burst'): { tokens: number; micros: bigint } {
  const tokens = fields.number(name, AMOUNT, (value) => value > 0 && Number.isFinite(value));
  const micros = tokens === undefined ? undefined : exactMicros(tokens);
  if (tokens === undefined || micros === undefined) throw fields.wrong(name, AMOUNT);
  return { tokens, micros };
}

/** The millionths of a positive number, if it is a whole number of them as people write it (0.1 is 100,000). */
function exactMicros(value: number): bigint | undefined {
  // toFixed gives exact decimals up to 10^21; above that every double is whole.
  if (value >= 1e21) return BigInt(value) * BigInt(MICRO);
  const text = value.toFixed(6);
  return Number(text) === value ? BigInt(text.replace('.', '')) : undefined;
}

function readPeriod(fields: Fields): Microseconds {
  const expected = "a period such as '1s', '500ms', '15m', '1h', '30d', or a number of ms, in whole microseconds";
  const per = fields.has('per') ? fields.get('per') : '1s';
  const ms = periodMs(per);
  if (ms === undefined) throw fields.wrong('per', expected);
  const micros = Math.round(ms * MICROS_PER_MS);
  // '1.1s' times 1000 may miss a whole number by the last bits of a double; anything more was really written.
  const isWhole = Math.abs(ms * MICROS_PER_MS - micros) <= micros * 4 * Number.EPSILON;
  if (!isWhole || !Number.isSafeInteger(micros) || micros < 1) throw fields.wrong('per', expected);
  return micros;
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestCommonDivisor(b, a % b);
}
