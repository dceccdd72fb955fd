import { describe, expect, it } from 'vitest';
import { InvalidPolicyError } from '../../../src/errors.js';
import { parsePolicies, parsePolicy } from '../../../src/policy/parse-policy.js';
import { everyTerms, termsFor } from '../../../src/policy/policy.js';

const rate = { rate: 1, burst: 1 };

/** `api` with these fields; `ceiling` unless they have a tier. */
function api(fields: object): object {
  return { name: 'api', ceiling: rate, ...fields };
}

function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidPolicyError);
    return (error as Error).message;
  }
  throw new Error('Nothing was thrown');
}

const AMOUNT = 'a positive number with at most 6 decimals';
const PERIOD = "a period such as '1s', '500ms', '15m', '1h', '30d', or a number of ms, in whole microseconds";
const NAME = '1 to 64 characters of A–Z a–z 0–9 _ - . with no dot first, last or doubled';
const MODE = 'one of "enforce", "shadow", "allow", "deny"';

describe('parsePolicy refuses, with the field, what was expected and what was given:', () => {
  it.each<[object | unknown, string]>([
    [undefined, 'Expected a policy to be an object, got undefined.'],
    [null, 'Expected a policy to be an object, got null.'],
    ['api', 'Expected a policy to be an object, got "api".'],
    [[], 'Expected a policy to be an object, got an array of 0.'],

    [{}, `Expected \`name\` to be ${NAME}, got undefined.`],
    [{ name: '' }, `Expected \`name\` to be ${NAME}, got "".`],
    [{ name: 7 }, `Expected \`name\` to be ${NAME}, got 7.`],
    [{ name: 'a b' }, `Expected \`name\` to be ${NAME}, got "a b".`],
    [{ name: 'a/b' }, `Expected \`name\` to be ${NAME}, got "a/b".`],
    [{ name: 'ü' }, `Expected \`name\` to be ${NAME}, got "ü".`],
    [{ name: '.a' }, `Expected \`name\` to be ${NAME}, got ".a".`],
    [{ name: 'a.' }, `Expected \`name\` to be ${NAME}, got "a.".`],
    // C130: a name is part of a NATS subject and of Redis keys.
    [{ name: 'a..b' }, `Expected \`name\` to be ${NAME}, got "a..b".`],
    [{ name: 'a\n' }, `Expected \`name\` to be ${NAME}, got "a\\n".`],
    [{ name: 'a'.repeat(65) }, `Expected \`name\` to be ${NAME}, got a string of 65 characters.`],
    // Inherited fields are not the document's own.
    [Object.create(api({})), `Expected \`name\` to be ${NAME}, got undefined.`],

    [
      { name: 'api' },
      'Expected a policy to have at least one of `local`, `ceiling`, `concurrency`, got none. (policy "api")',
    ],
    [
      api({ celling: rate }),
      'Expected a policy to have no fields but name, version, local, ceiling, concurrency, mode, lease, outage, inheritance, ' +
        'storeLoss, allow, deny, overrides, got "celling". (policy "api")',
    ],
    [
      api(JSON.parse('{"__proto__": {}}')),
      'Expected a policy to have no fields but name, version, local, ceiling, concurrency, mode, lease, outage, inheritance, ' +
        'storeLoss, allow, deny, overrides, got "__proto__". (policy "api")',
    ],

    ...[-1, 1.5, Number.NaN, 2 ** 53, '3', null].map((version): [object, string] => [
      api({ version }),
      `Expected \`version\` to be a whole number from 0 to 2^53 − 1, got ${typeof version === 'string' ? '"3"' : version}. (policy "api")`,
    ]),

    ...(['local', 'ceiling'] as const).flatMap((tier): [object, string][] => [
      [api({ [tier]: 5 }), `Expected \`${tier}\` to be an object, got 5. (policy "api")`],
      [api({ [tier]: null }), `Expected \`${tier}\` to be an object, got null. (policy "api")`],
      [
        api({ [tier]: { ...rate, limit: 1 } }),
        `Expected \`${tier}\` to have no fields but algorithm, rate, burst, per, got "limit". (policy "api")`,
      ],
      ...(['rate', 'burst'] as const).flatMap((field): [object, string][] =>
        (
          [
            [Number.NaN, 'NaN'],
            [Number.POSITIVE_INFINITY, 'Infinity'],
            [0, '0'],
            [-1, '-1'],
            ['10', '"10"'],
            [10n, '10n'],
            [null, 'null'],
            [undefined, 'undefined'],
            [{}, 'an object'],
            [0.000_000_1, '1e-7'],
            [1.000_000_5, '1.0000005'],
          ] as const
        ).map(([value, shown]) => [
          api({ [tier]: { ...rate, [field]: value } }),
          `Expected \`${tier}.${field}\` to be ${AMOUNT}, got ${shown}. (policy "api")`,
        ]),
      ),
      ...(
        [
          [0, '0'],
          [-1, '-1'],
          [Number.NaN, 'NaN'],
          ['', '""'],
          ['1', '"1"'],
          ['1w', '"1w"'],
          ['1 s', '"1 s"'],
          ['0s', '"0s"'],
          [null, 'null'],
          [0.000_5, '0.0005'],
          [1.000_01, '1.00001'],
          ['1.00001ms', '"1.00001ms"'],
          [1e300, '1e+300'],
        ] as const
      ).map(([per, shown]): [object, string] => [
        api({ [tier]: { ...rate, per } }),
        `Expected \`${tier}.per\` to be ${PERIOD}, got ${shown}. (policy "api")`,
      ]),
      [
        api({ [tier]: { rate: 1, burst: 9_007_199_255 } }),
        `Expected \`${tier}.burst\` to be below 2^53 millionths (9007199254.74 tokens), got 9007199255. (policy "api")`,
      ],
      [
        api({ [tier]: { rate: 4_600_000_000.000_001, burst: 1 } }),
        `Expected \`${tier}.rate\` to be such that rate × 10⁶ over \`per\` in µs reduces to whole numbers below 2^52 ` +
          '(4600000000000001/1000000 does not: use a smaller rate or fewer digits), got 4600000000.000001. (policy "api")',
      ],
      [
        api({ [tier]: { rate: 0.000_001, burst: 1, per: '60000d' } }),
        `Expected \`${tier}.rate\` to be such that rate × 10⁶ over \`per\` in µs reduces to whole numbers below 2^52 ` +
          '(1/5184000000000000 does not: use a shorter `per`), got 0.000001. (policy "api")',
      ],
    ]),

    [api({ mode: 'off' }), `Expected \`mode\` to be ${MODE}, got "off". (policy "api")`],
    [api({ mode: null }), `Expected \`mode\` to be ${MODE}, got null. (policy "api")`],
    [api({ storeLoss: 'slow' }), 'Expected `storeLoss` to be one of "quick", "strict", got "slow". (policy "api")'],
    [
      api({ inheritance: 'none' }),
      'Expected `inheritance` to be one of "as-is", "proportional", "additive", "reset", got "none". (policy "api")',
    ],

    [api({ lease: 5 }), 'Expected `lease` to be an object, got 5. (policy "api")'],
    [api({ lease: { ttl: 5 } }), 'Expected `lease` to have no fields but durationMs, got "ttl". (policy "api")'],
    ...[49, 600_001, 50.5, Number.NaN].map((durationMs): [object, string] => [
      api({ lease: { durationMs } }),
      `Expected \`lease.durationMs\` to be a whole number of ms from 50 to 600000, got ${durationMs}. (policy "api")`,
    ]),
    [
      api({ lease: { durationMs: '2s' } }),
      'Expected `lease.durationMs` to be a whole number of ms from 50 to 600000, got "2s". (policy "api")',
    ],

    [api({ outage: 'deny' }), 'Expected `outage` to be an object, got "deny". (policy "api")'],
    [
      api({ outage: { mode: 'safe' } }),
      'Expected `outage.mode` to be one of "deny", "allow", "share", got "safe". (policy "api")',
    ],
    [api({ outage: { size: 3 } }), 'Expected `outage` to have no fields but mode, fleet, got "size". (policy "api")'],
    ...[0, -1, 1.5, Number.POSITIVE_INFINITY].map((fleet): [object, string] => [
      api({ outage: { fleet } }),
      `Expected \`outage.fleet\` to be a positive whole number, got ${fleet}. (policy "api")`,
    ]),

    [api({ overrides: [] }), 'Expected `overrides` to be an object, got an array of 0. (policy "api")'],
    [
      api({ overrides: { '': { local: rate } } }),
      'Expected `overrides` to have keys of 1 to 512 bytes, got one of 0. (policy "api")',
    ],
    [
      // 257 characters of two bytes each.
      api({ overrides: { ['é'.repeat(257)]: { local: rate } } }),
      'Expected `overrides` to have keys of 1 to 512 bytes, got one of 514. (policy "api")',
    ],
    [api({ overrides: { a: 1 } }), 'Expected `overrides["a"]` to be an object, got 1. (policy "api")'],
    [
      api({ overrides: { a: {} } }),
      'Expected `overrides["a"]` to have at least one of `local`, `ceiling`, `concurrency`, `mode`, got none. (policy "api")',
    ],
    [
      api({ overrides: { a: { lease: {} } } }),
      'Expected `overrides["a"]` to have no fields but local, ceiling, concurrency, mode, got "lease". (policy "api")',
    ],
    [
      api({ overrides: { 'a"b': { local: { rate: Number.NaN, burst: 1 } } } }),
      `Expected \`overrides["a\\"b"].local.rate\` to be ${AMOUNT}, got NaN. (policy "api")`,
    ],
    [
      api({ overrides: { a: { ceiling: { ...rate, cost: 1 } } } }),
      'Expected `overrides["a"].ceiling` to have no fields but algorithm, rate, burst, per, got "cost". (policy "api")',
    ],
    [
      api({ overrides: { a: { mode: 'on' } } }),
      `Expected \`overrides["a"].mode\` to be ${MODE}, got "on". (policy "api")`,
    ],
  ])('%o → %s', (document, message) => {
    expect(messageOf(() => parsePolicy(document))).toBe(message);
  });
});

describe('parsePolicy', () => {
  it('fills in defaults in the policy, and only the version in its document', () => {
    const policy = parsePolicy({ name: 'api', ceiling: { rate: 1000, burst: 2000 } });
    expect(policy).toMatchObject({
      name: 'api',
      version: 0,
      terms: {
        local: undefined,
        ceiling: { algorithm: 'token-bucket', burst: 2e9, rateNum: 1000, rateDen: 1 },
        mode: 'enforce',
        fence: 'api',
      },
      lease: { durationMs: 2_000 },
      outage: { mode: 'deny', fleet: undefined },
      inheritance: 'as-is',
      storeLoss: 'quick',
    });
    expect(policy.document).toEqual({ name: 'api', version: 0, ceiling: { rate: 1000, burst: 2000 } });
  });

  it('takes every field, and gives it back in a document that makes the same policy again', () => {
    const document = {
      name: 'a.B_c-9',
      version: Number.MAX_SAFE_INTEGER,
      local: { rate: 0.5, burst: 3, per: 500 },
      ceiling: { rate: 10, burst: 20, per: '1m' },
      lease: { durationMs: 100 },
      outage: { mode: 'share', fleet: 8 },
      mode: 'shadow',
      inheritance: 'additive',
      overrides: { vip: { ceiling: { rate: 99, burst: 99 } }, bad: { mode: 'deny' } },
    };
    const policy = parsePolicy(document);
    expect(policy.document).toEqual(document);
    expect(parsePolicy(policy.document)).toEqual(policy);
  });

  it('takes a field that is undefined for one that is left out', () => {
    const policy = parsePolicy({ name: 'api', local: undefined, ceiling: rate, mode: undefined, lease: {} });
    expect(policy.document).toEqual({ name: 'api', version: 0, ceiling: rate, lease: {} });
    expect(Object.keys(policy.document)).not.toContain('local');
  });

  it.each([
    // [rate, burst, per, rateNum / rateDen in micro-tokens per µs, burst in micro-tokens]
    [1, 1, undefined, [1, 1], 1_000_000],
    [200, 400, '1s', [200, 1], 400_000_000],
    [1, 1, '1d', [1, 86_400], 1_000_000],
    [0.1, 0.3, '1s', [1, 10], 300_000],
    [1.1, 4.35, '1s', [11, 10], 4_350_000],
    [0.000_001, 0.000_001, '1s', [1, 1_000_000], 1],
    [7, 7, '1.5ms', [14_000, 3], 7_000_000],
    [1, 1, 0.001, [1_000_000, 1], 1_000_000],
    [3, 1, '1.005s', [200, 67], 1_000_000],
    [4_294_967_296.123_45, 9_007_199_254.740_98, '1000s', [85_899_345_922_469, 20_000_000], 9_007_199_254_740_980],
  ])('counts %d per %d burst over %s exactly', (perPeriod, burst, per, [rateNum, rateDen], micros) => {
    const { ceiling } = parsePolicy({ name: 'api', ceiling: { rate: perPeriod, burst, ...(per && { per }) } }).terms;
    expect(ceiling).toEqual({ algorithm: 'token-bucket', burst: micros, rateNum, rateDen });
  });

  it('gives the local tier its rate per ms', () => {
    expect(parsePolicy({ name: 'api', local: { rate: 200, burst: 400 } }).terms.local).toEqual({
      algorithm: 'token-bucket',
      ratePerMs: 0.2,
      burst: 400,
    });
    expect(parsePolicy({ name: 'api', local: { rate: 6, burst: 1.5, per: '1m' } }).terms.local).toEqual({
      algorithm: 'token-bucket',
      ratePerMs: 0.0001,
      burst: 1.5,
    });
  });

  it('lets an override inherit the tiers and the mode that it leaves out, under a fence of its own', () => {
    const policy = parsePolicy({
      name: 'api',
      local: { rate: 1, burst: 1 },
      ceiling: { rate: 2, burst: 2 },
      mode: 'shadow',
      overrides: { vip: { ceiling: { rate: 9, burst: 9 } }, bad: { mode: 'deny' } },
    });
    expect(termsFor(policy, 'vip')).toEqual({
      local: policy.terms.local,
      ceiling: { algorithm: 'token-bucket', burst: 9_000_000, rateNum: 9, rateDen: 1 },
      mode: 'shadow',
      fence: 'api#vip',
    });
    expect(termsFor(policy, 'bad')).toEqual({ ...policy.terms, mode: 'deny', fence: 'api#bad' });
    expect(termsFor(policy, 'other')).toBe(policy.terms);
  });

  it('finds terms by key before pattern, by the most exact pattern, and of equals what denies first', () => {
    const burst = (burst: number) => ({ local: { rate: 1, burst } });
    const policy = parsePolicy({
      name: 'api',
      local: { rate: 1, burst: 1 },
      deny: ['bad-*', '10.0.0.9', 'tie-*x'],
      allow: ['*.internal', 'bad-but-paid', 'tie-x*'],
      overrides: {
        '*': burst(2),
        'tenant-*': burst(3),
        'tenant-7*': burst(4),
        'tenant-77': burst(5),
        'a\\*b': burst(6),
      },
    });
    const found = (key: string) => {
      const { local, mode } = termsFor(policy, key);
      return mode === 'enforce' ? local?.burst : mode;
    };
    expect(['x', 'tenant-1', 'tenant-70', 'tenant-77', 'a*b', 'aab'].map(found)).toEqual([2, 3, 4, 5, 6, 2]);
    expect(['bad-one', '10.0.0.9', 'a.internal', 'bad-but-paid', 'tie-xx'].map(found)).toEqual([
      ...['deny', 'deny', 'allow', 'allow', 'deny'],
    ]);
    expect(termsFor(policy, 'tenant-1').fence).toBe('api#tenant-*');
    expect(termsFor(policy, 'a*b').fence).toBe('api#a\\*b');
    expect(termsFor(policy, 'bad-one')).toMatchObject({ fence: 'api#bad-*', local: { burst: 1 } });
    expect(everyTerms(policy)).toHaveLength(12);
    expect(parsePolicy(policy.document)).toEqual(policy);
  });

  it.each<[object, string]>([
    [{ allow: 'a' }, 'Expected `allow` to be an array of texts, got "a".'],
    [{ deny: ['a', 5] }, 'Expected `deny` to be an array of texts, got an array of 2.'],
    [{ deny: [''] }, 'Expected a policy to have keys of 1 to 512 bytes, got one of 0.'],
    [
      { allow: ['a'], deny: ['a'] },
      'Expected a policy to have each key once in `allow`, `deny` and `overrides`, got "a" twice.',
    ],
    [
      { deny: ['a-*'], overrides: { 'a-*': { mode: 'allow' } } },
      'Expected a policy to have each key once in `allow`, `deny` and `overrides`, got "a-*" twice.',
    ],
    [
      { deny: Array.from({ length: 1_001 }, (_, i) => `${i}*`) },
      'Expected a policy to have at most 1000 keys with a star, got 1001.',
    ],
  ])('refuses lists that are none, or that contradict each other: %o', (fields, message) => {
    expect(messageOf(() => parsePolicy(api(fields)))).toContain(message);
  });

  it('treats "__proto__" and other names of Object.prototype as keys like any other', () => {
    const document = JSON.parse(
      '{"name":"api","local":{"rate":1,"burst":1},"overrides":{"__proto__":{"mode":"deny"}}}',
    );
    const policy = parsePolicy(document);
    expect(termsFor(policy, '__proto__').mode).toBe('deny');
    expect(termsFor(policy, 'constructor')).toBe(policy.terms);
    expect(JSON.parse(JSON.stringify(policy.document))).toEqual({ version: 0, ...document });
    expect(Object.getPrototypeOf(policy.document.overrides)).toBe(Object.prototype);
  });

  it('neither changes nor keeps the object it is given', () => {
    const document = api({ overrides: { a: { local: { rate: 1, burst: 1 } } }, lease: { durationMs: 99 } });
    const before = structuredClone(document) as { overrides: { a: { local: { rate: number } } } };
    const policy = parsePolicy(document);
    expect(document).toEqual(before);
    (document as typeof before).overrides.a.local.rate = 77;
    expect(policy.document.overrides?.['a']?.local).toEqual({ rate: 1, burst: 1 });
  });

  it('reads each field once, so that one that answers differently the second time gains nothing', () => {
    let reads = 0;
    const document = {
      name: 'api',
      get local() {
        reads += 1;
        return reads === 1 ? rate : { rate: Number.NaN, burst: -1 };
      },
    };
    expect(parsePolicy(document).document.local).toEqual(rate);
    expect(reads).toBe(1);
  });

  it('gives a policy that is frozen through and through', () => {
    const policy = parsePolicy(
      api({ local: rate, lease: {}, outage: {}, overrides: { a: { local: rate, ceiling: rate } } }),
    );
    expectFrozen(policy);
    expect(() => (policy.overrides as Map<string, unknown>).set('b', policy.terms)).toThrow(TypeError);
    expect(() => (policy.overrides as Map<string, unknown>).delete('a')).toThrow(TypeError);
    expect(() => (policy.overrides as Map<string, unknown>).clear()).toThrow(TypeError);
    expect(policy.overrides.size).toBe(1);
  });
});

describe('parsePolicies', () => {
  it('gives a policy for each document, in order', () => {
    expect(parsePolicies([api({}), api({ name: 'b' })]).map(({ name }) => name)).toEqual(['api', 'b']);
  });

  it.each<[unknown, string]>([
    [undefined, 'Expected `policies` to be an array of policies, got undefined.'],
    [{}, 'Expected `policies` to be an array of policies, got an object.'],
    [[api({}), api({ name: 'b' }), api({})], 'Expected each policy once, got "api" twice.'],
    [[api({}), { name: '!' }], `Expected \`name\` to be ${NAME}, got "!". (policies[1])`],
    [[api({}), 5], 'Expected a policy to be an object, got 5. (policies[1])'],
  ])('refuses %o', (documents, message) => {
    expect(messageOf(() => parsePolicies(documents))).toBe(message);
  });
});

function expectFrozen(value: unknown, path = 'policy'): void {
  if (typeof value !== 'object' || value === null) return;
  expect(Object.isFrozen(value), `${path} is frozen`).toBe(true);
  const inner = value instanceof Map ? value.entries() : Object.entries(value);
  for (const [key, field] of inner) expectFrozen(field, `${path}.${key}`);
}
