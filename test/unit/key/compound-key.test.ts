import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compoundKey } from '../../../src/key/compound-key.js';

describe('a key of several parts', () => {
  it('reads as its parts', () => {
    expect(compoundKey('GET /orders/:id', '2001:db8::/64')).toBe('GET /orders/:id|2001:db8::/64');
    expect(compoundKey('a|b', 'c\\')).toBe('a\\|b|c\\\\');
  });

  it.each([
    [
      ['a:b', 'c'],
      ['a', 'b:c'],
    ],
    [
      ['aa', 'b'],
      ['a', 'ab'],
    ],
    [
      ['21', '1'],
      ['2', '11'],
    ],
    [['a|b'], ['a', 'b']],
    [['a\\', 'b'], ['a\\|b']],
    [
      ['', 'a'],
      ['a', ''],
    ],
    [['a', ''], ['a']],
  ])('tells %j from %j (C125)', (a, b) => {
    expect(compoundKey(...a)).not.toBe(compoundKey(...b));
  });

  it('is another one for any other parts (C125)', () => {
    const part = fc.array(fc.constantFrom('|', '\\', 'a', ''), { maxLength: 5 }).map((all) => all.join(''));
    const parts = fc.array(fc.oneof(part, fc.string({ unit: 'binary' })), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        fc.pre(a.join('') !== '' || a.length > 1);
        fc.pre(b.join('') !== '' || b.length > 1);
        expect(compoundKey(...a) === compoundKey(...b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
      { numRuns: 5_000 },
    );
  });

  it('refuses what is no key', () => {
    expect(() => compoundKey()).toThrow('at least one part');
    expect(() => compoundKey('')).toThrow('at least one part');
    expect(() => compoundKey('user', 42 as never)).toThrow('every part of a key to be a string, got 42');
  });
});
