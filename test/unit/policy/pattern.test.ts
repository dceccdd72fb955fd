import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { matches, readPattern } from '../../../src/policy/pattern.js';

const hit = (pattern: string, key: string): boolean => matches(readPattern(pattern), key);

describe('a pattern', () => {
  it.each([
    ['*', ['', 'a', '*'], []],
    ['tenant-*', ['tenant-', 'tenant-7', 'tenant-*'], ['tenant', 'Tenant-7', 'x tenant-7']],
    ['*.example.org', ['a.example.org', '.example.org'], ['example.org', 'a.example.org.evil']],
    ['a*b*c', ['abc', 'a1b2c', 'abbcc', 'ab\nc'], ['ab', 'acb', 'abcd', 'ac']],
    ['ab*ba', ['abba', 'ab-ba'], ['aba', 'ab']],
    ['a**b', ['ab', 'axb'], ['a']],
    ['*aa*aa*', ['aaaa', 'xaa-aay'], ['aaa', 'aa']],
    [String.raw`a\**`, ['a*', 'a*b'], ['a', 'ab']],
    [String.raw`a\\*`, ['a\\', 'a\\b'], ['a', 'a*']],
    [String.raw`a\b*`, ['a\\b', 'a\\bc'], ['ab']],
    ['🦊*', ['🦊', '🦊x'], ['x🦊']],
  ])('%s', (pattern, yes, no) => {
    expect(yes.filter((key) => !hit(pattern, key))).toEqual([]);
    expect(no.filter((key) => hit(pattern, key))).toEqual([]);
  });

  it('without a star is the key itself, with its backslashes; of escaped stars only, the key that they spell', () => {
    expect(readPattern(String.raw`a\\b|\x`)).toEqual([String.raw`a\\b|\x`]);
    expect(readPattern(String.raw`a\*\\b`)).toEqual(['a*\\b']);
  });

  it('stands for the same keys as the regular expression of it', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '*', '.', '\\'), maxLength: 8 });
    fc.assert(
      fc.property(text, text, (pattern, key) => {
        const parts = readPattern(pattern);
        const source = parts.map((part) => part.replace(/[.*\\]/g, String.raw`\$&`)).join('.*');
        if (parts.length > 1) expect(matches(parts, key)).toBe(new RegExp(`^${source}$`, 's').test(key));
      }),
      { numRuns: 2_000 },
    );
  });

  it('is matched in time that grows with the key, not with its powers', () => {
    const pattern = readPattern(`${'*a'.repeat(200)}*b`);
    const started = performance.now();
    expect(matches(pattern, 'a'.repeat(512))).toBe(false);
    expect(performance.now() - started).toBeLessThan(50);
  });
});
