import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { multiplyDivide } from '../../src/ceiling/exact.js';

const [limits, exact] = ['limits', 'exact'].map((name) =>
  readFileSync(new URL(`../../lua/${name}.lua`, import.meta.url), 'utf8'),
);
/** Eight digits more than doubles have would hide nothing: 17 are all they have. */
const SCRIPT = `${limits}\n${exact}
local results = {}
for i = 1, #ARGV, 4 do
  local quotient, remainder = multiplyDivide(ARGV[i] + 0, ARGV[i + 1] + 0, ARGV[i + 2] + 0, ARGV[i + 3] + 0)
  results[#results + 1] = string.format('%.17g', quotient)
  results[#results + 1] = string.format('%.17g', remainder)
end
return results`;

/** Of every magnitude, not only of the largest. */
const upTo = (bits: number): fc.Arbitrary<number> =>
  fc
    .tuple(fc.integer({ min: 0, max: bits }), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }))
    .map(([exponent, fraction]) => Math.floor(2 ** exponent * (1 + fraction)) % 2 ** bits);

const question = fc
  .record({ a: upTo(53), b: upTo(52), divisor: upTo(52).map((n) => n + 1), carry: upTo(52) })
  .map(({ a, b, divisor, carry }) => ({ a, b, divisor: Math.min(divisor, 2 ** 52 - 1), carry }))
  .map(({ a, b, divisor, carry }) => ({ a, b, divisor, carry: carry % divisor }))
  .filter(({ a, b, divisor, carry }) => (BigInt(a) * BigInt(b) + BigInt(carry)) / BigInt(divisor) < 2n ** 53n);

describe('multiplyDivide', () => {
  let redis: Redis;
  beforeAll(() => {
    redis = new Redis(inject('redisUrl'));
  });
  afterAll(() => redis.disconnect());

  it('is exact wherever its quotient is below 2^53, in TypeScript and in Lua', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(question, { minLength: 50, maxLength: 50 }), async (questions) => {
        const args = questions.flatMap(({ a, b, divisor, carry }) => [a, b, divisor, carry].map(String));
        const lua = ((await redis.eval(SCRIPT, 0, ...args)) as string[]).map(Number);
        for (const [i, { a, b, divisor, carry }] of questions.entries()) {
          const product = BigInt(a) * BigInt(b) + BigInt(carry);
          const expected = {
            quotient: Number(product / BigInt(divisor)),
            remainder: Number(product % BigInt(divisor)),
          };
          expect(multiplyDivide(a, b, divisor, carry)).toEqual(expected);
          expect({ quotient: lua[2 * i], remainder: lua[2 * i + 1] }).toEqual(expected);
        }
      }),
      { numRuns: 100 },
    );
  });
});
