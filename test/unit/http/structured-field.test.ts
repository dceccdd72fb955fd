import fc from 'fast-check';
import { expect, it } from 'vitest';
import { listMember } from '../../../src/http/structured-field.js';
import { membersOf } from './ruled.js';

it('is read back as written by an independent parser, whatever the strings, numbers and bytes', () => {
  const text = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) });
  fc.assert(
    fc.property(
      text,
      fc.nat(),
      fc.uint8Array(),
      text,
      fc.constantFrom('' as const, ' ' as const),
      (value, n, bytes, s, gap) => {
        const field = `${listMember(value, { n, bytes, s, none: undefined }, gap)}, ${listMember('other', {})}`;
        const read = membersOf(field)[value] as { n: number; bytes: string; s: string };
        if (value === 'other') return;
        expect(read.n).toBe(n);
        expect(read.bytes).toBe(Buffer.from(bytes).toString('base64'));
        expect(read.s).toBe(s);
        expect(read).not.toHaveProperty('none');
      },
    ),
  );
});

it('cuts integers to the fifteen digits that the format has', () => {
  expect(listMember('x', { q: 1e20, w: Number.POSITIVE_INFINITY })).toBe('"x";q=999999999999999;w=999999999999999');
});
