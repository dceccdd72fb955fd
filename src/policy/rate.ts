import { MICRO, MICROS_PER_MS, type Microseconds, type Milliseconds, periodMs, type Tokens } from '../units.js';
import type { Fields } from './fields.js';
import type { CeilingTerms, LocalTerms } from './policy.js';

/** Numerator and denominator of a rate stay below this, so that the ledger's remainders stay below 2^53. */
const FRACTION_LIMIT = 2n ** 52n;
const POSITIVE_AMOUNT = 'a positive number with at most 6 decimals';
const AMOUNT = 'a number from 0 with at most 6 decimals';
const PERIOD = "a period such as '1s', '500ms', '15m', '1h', '30d', or a number of ms";

/** A number of tokens as it was written, and in exact millionths. */
export interface Amount {
  readonly tokens: Tokens;
  readonly micros: bigint;
}

/** A rate in both forms: what a tier of any algorithm is counted by. */
export interface Numbers {
  readonly local: LocalTerms;
  readonly ceiling: CeilingTerms;
}

/**
 * `amount` tokens in each `period`, at most `burst` at once. Both tiers keep the ceiling's limits, so that a limit can
 * move from one to the other: a burst below 2^53 micro-tokens, and a rate of whole numbers below 2^52.
 *
 * @throws InvalidPolicyError naming the field `name`, which `amount` was read from
 */
export function rateOf(
  fields: Fields,
  name: string,
  { amount, burst, period }: { amount: Amount; burst: Amount; period: Microseconds },
): Numbers {
  const divisor = greatestCommonDivisor(amount.micros, BigInt(period));
  const numerator = amount.micros / divisor;
  const denominator = BigInt(period) / divisor;
  if (numerator >= FRACTION_LIMIT || denominator >= FRACTION_LIMIT) {
    const span = name === 'rate' ? 'per' : 'window';
    const remedy = numerator >= FRACTION_LIMIT ? `a smaller ${name} or fewer digits` : `a shorter \`${span}\``;
    throw fields.wrong(
      name,
      `such that ${name} × 10⁶ over \`${span}\` in µs reduces to whole numbers below 2^52 ` +
        `(${numerator}/${denominator} does not: use ${remedy})`,
    );
  }
  return {
    local: { ratePerMs: amount.tokens / (period / MICROS_PER_MS), burst: burst.tokens },
    ceiling: { burst: Number(burst.micros), rateNum: Number(numerator), rateDen: Number(denominator) },
  };
}

/** The positive number of tokens under `name`. */
export function readAmount(fields: Fields, name: string): Amount {
  return readExact(fields, name, POSITIVE_AMOUNT, (value) => value > 0);
}

/** The same, where there may be none. */
export function readAmountOrZero(fields: Fields, name: string): Amount {
  return readExact(fields, name, AMOUNT, (value) => value >= 0);
}

/** An amount that a bucket may hold: below 2^53 millionths. */
export function readBurst(fields: Fields, name: string): Amount {
  return mayBeHeld(fields, name, readAmount(fields, name));
}

/** @throws InvalidPolicyError where a bucket can't hold so much */
export function mayBeHeld(fields: Fields, name: string, amount: Amount): Amount {
  if (amount.micros > Number.MAX_SAFE_INTEGER) throw fields.wrong(name, 'below 2^53 millionths (9007199254.74 tokens)');
  return amount;
}

/** The whole microseconds of the period under `name`; `more` says what else may stand there. */
export function readPeriod(fields: Fields, name: string, byDefault?: Milliseconds, more = ''): Microseconds {
  const expected = `${PERIOD}, in whole microseconds${more}`;
  const ms = fields.has(name) ? periodMs(fields.get(name)) : byDefault;
  if (ms === undefined) throw fields.wrong(name, expected);
  const micros = Math.round(ms * MICROS_PER_MS);
  // '1.1s' times 1000 may miss a whole number by the last bits of a double; anything more was really written.
  const isWhole = Math.abs(ms * MICROS_PER_MS - micros) <= micros * 4 * Number.EPSILON;
  if (!isWhole || !Number.isSafeInteger(micros) || micros < 1) throw fields.wrong(name, expected);
  return micros;
}

function readExact(fields: Fields, name: string, expected: string, check: (value: number) => boolean): Amount {
  const tokens = fields.number(name, expected, (value) => Number.isFinite(value) && check(value));
  const micros = tokens === undefined ? undefined : exactMicros(tokens);
  if (tokens === undefined || micros === undefined) throw fields.wrong(name, expected);
  return { tokens, micros };
}

/** The millionths of a number, if it is a whole number of them as people write it (0.1 is 100,000). */
function exactMicros(value: number): bigint | undefined {
  // toFixed gives exact decimals up to 10^21; above that every double is whole.
  if (value >= 1e21) return BigInt(value) * BigInt(MICRO);
  const text = value.toFixed(6);
  return Number(text) === value ? BigInt(text.replace('.', '')) : undefined;
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestCommonDivisor(b, a % b);
}
