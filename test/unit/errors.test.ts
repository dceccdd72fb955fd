import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as errors from '../../src/errors.js';
import { noSeat } from '../../src/seat/seat.js';
import { DeniedError } from '../../src/verb/denied-error.js';

const PAGE = readFileSync(new URL('../../docs/reference/errors.md', import.meta.url), 'utf8');
const SECTIONS = new Map(
  PAGE.split(/^## /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section]),
);

/** One of each, as they are made. */
const EXAMPLES = [
  new errors.InvalidOptionError('x'),
  new errors.InvalidPolicyError('x'),
  new errors.UnknownPolicyError('x', ['a', 'b']),
  new errors.PolicyConflictError('x'),
  new errors.PolicySourceError('x'),
  new errors.InvalidKeyError('x'),
  new errors.InvalidCostError(-1),
  new errors.CostAboveBurstError(3, 'local', 2),
  new DeniedError('x', noSeat('full')),
  new errors.CeilingError('x', { cause: new Error('why') }),
  new errors.RedisClientError('x'),
  new errors.MissingPeerError('ioredis', 'redis'),
  new errors.ClosedError(),
];

describe('errors', () => {
  it('have each code once, and docs/reference/errors.md a section for each, in their order, and for nothing else', () => {
    expect(EXAMPLES.map(({ code }) => code)).toEqual([...errors.ERROR_CODES]);
    expect([...SECTIONS.keys()]).toEqual([...errors.ERROR_CODES]);
  });

  it('are named in their section by the class that is exported', () => {
    for (const error of EXAMPLES) {
      expect(SECTIONS.get(error.code)).toContain(`\`${error.name}\`.`);
      expect(error).toBeInstanceOf(errors.HeadgateError);
    }
    const classes = Object.entries({ ...errors, DeniedError }).filter(
      ([name]) => /Error$/.test(name) && name !== 'HeadgateError',
    );
    expect(classes.map(([name]) => name).sort()).toEqual(EXAMPLES.map(({ name }) => name).sort());
  });

  it('keep their cause, and say what was expected and given', () => {
    expect(new errors.CeilingError('x', { cause: 'why' }).cause).toBe('why');
    expect(new errors.UnknownPolicyError('x', ['a', 'b']).message).toBe(
      'Expected the name of a known policy ("a", "b"), got "x".',
    );
    expect(new errors.UnknownPolicyError('x', []).message).toBe(
      'Expected the name of a known policy (none yet), got "x".',
    );
    expect(new errors.MissingPeerError('ioredis', 'redis').message).toBe(
      '`redis` as it is given needs the package "ioredis", which is not installed: npm install ioredis.',
    );
  });

  it.each([
    ['short', '"short"'],
    ['x'.repeat(65), 'a string of 65 characters'],
    [() => {}, 'a function'],
    [12n, '12n'],
    [Symbol('s'), 'a symbol'],
    [[1, 2], 'an array of 2'],
    [{ secret: 1 }, 'an object'],
    [null, 'null'],
    [undefined, 'undefined'],
    [-0.5, '-0.5'],
    [true, 'true'],
  ])('show %s as %s, and never the contents of an object', (value, shown) => {
    expect(errors.show(value)).toBe(shown);
  });
});
