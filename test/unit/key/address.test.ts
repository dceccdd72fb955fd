import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressKey, normalAddress } from '../../../src/key/address.js';

describe('the one spelling of an address', () => {
  it.each([
    ['2001:db8::a:b', '2001:db8::a:b'],
    ['2001:0DB8:0:0:0:0:a:b', '2001:db8::a:b'],
    ['2001:db8:0:0:0:0:0.10.0.11', '2001:db8::a:b'],
    ['[2001:db8::a:b]', '2001:db8::a:b'],
    ['[2001:db8::a:b]:443', '2001:db8::a:b'],
    ['1.2.3.4', '1.2.3.4'],
    ['1.2.3.4:5678', '1.2.3.4'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::FFFF:102:304', '1.2.3.4'],
    ['0:0:0:0:0:ffff:0102:0304', '1.2.3.4'],
    ['[::ffff:1.2.3.4]:80', '1.2.3.4'],
    ['64:ff9b::c000:201', '192.0.2.1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['fe80::1%whatever-somebody-writes', 'fe80::1'],
    ['::', '::'],
    ['::1', '::1'],
  ])('of %s is %s (C124)', (text, address) => {
    expect(normalAddress(text)).toBe(address);
  });

  it.each([
    ...['', ' ', '01.2.3.4', '1.2.3', '1.2.3.4.5', '1.2.3.256', '1.2.3.4:', '1.2.3.4:65536', '1.2.3.4:x', '0x7f.1'],
    ...[
      '8080',
      ':80',
      '[1.2.3.4',
      '2001:db8::a::b',
      '[2001:db8::1]443',
      '[2001:db8::1]:x',
      '2001:db8::1%',
      'example.org',
    ],
    ...['1.2.3.4, 5.6.7.8', 'unknown', '_hidden', '1.2.3.4\u0000', '１.2.3.4', '2130706433'],
  ])('is not there for %j (C124)', (text) => {
    expect(normalAddress(text)).toBeUndefined();
    expect(addressKey(text)).toBeUndefined();
  });

  it('is not there for what is no text', () => {
    for (const value of [undefined, null, 0, {}, []]) expect(normalAddress(value as never)).toBeUndefined();
  });

  it('is its own spelling, for any text at all, and nothing throws (C124)', () => {
    const pieces = fc.array(fc.constantFrom(...'0123456789abcdefABCDEF:.[]%/ ', '::', 'ffff', '255'), {
      maxLength: 24,
    });
    const texts = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 48 }),
      pieces.map((all) => all.join('')),
      fc.ipV4(),
      fc.ipV6(),
    );
    fc.assert(
      fc.property(texts, (text) => {
        const address = normalAddress(text);
        if (address !== undefined) expect(normalAddress(address)).toBe(address);
      }),
      { numRuns: 10_000 },
    );
  });
});

describe("a client's key", () => {
  it('is one for all addresses of a /64, and another for the next network (C122)', () => {
    const keys = new Set<string | undefined>();
    for (let i = 0; i < 1_000; i++) keys.add(addressKey(`2001:db8:1:2:${(i * 7).toString(16)}::${i.toString(16)}`));
    expect([...keys]).toEqual(['2001:db8:1:2::/64']);
    expect(addressKey('2001:db8:1:3::1')).toBe('2001:db8:1:3::/64');
  });

  it.each([
    ['2001:db8:1:2ff::1', 56, '2001:db8:1:200::/56'],
    ['2001:db8:1:2ff::1', 60, '2001:db8:1:2f0::/60'],
    ['2001:db8:1:2ff::1', 48, '2001:db8:1::/48'],
    ['2001:db8:1:2ff::1', 1, '::/1'],
    ['2001:db8:1:2ff::1', 128, '2001:db8:1:2ff::1'],
    ['ffff:ffff:ffff:ffff::', 63, 'ffff:ffff:ffff:fffe::/63'],
  ])('of %s by the first %i bits is %s', (address, ipv6Prefix, key) => {
    expect(addressKey(address, { ipv6Prefix })).toBe(key);
  });

  it('of an IPv4 address is that address, also where it is written as IPv6, whose prefix does not cut it', () => {
    for (const text of ['192.0.2.77', '::ffff:192.0.2.77', '64:ff9b::192.0.2.77']) {
      expect(addressKey(text, { ipv6Prefix: 1 })).toBe('192.0.2.77');
      expect(addressKey(text, { ipv4Prefix: 24 })).toBe('192.0.2.0/24');
      expect(addressKey(text, { ipv4Prefix: 26 })).toBe('192.0.2.64/26');
    }
  });

  it('is the same for two addresses exactly where their prefixes are', () => {
    const groups = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
    const bitsOf = (all: number[], bits: number) =>
      all
        .map((group) => group.toString(2).padStart(16, '0'))
        .join('')
        .slice(0, bits);
    // The last bits of a prefix are where two addresses that share most of it differ.
    const pairs = fc
      .tuple(groups, fc.integer({ min: 0, max: 127 }), fc.integer({ min: 1, max: 128 }))
      .map(([a, flipped, bits]) => {
        const b = [...a];
        b[flipped >> 4] = (b[flipped >> 4] as number) ^ (0x8000 >> (flipped & 15));
        return [a, b, bits] as const;
      });
    fc.assert(
      fc.property(pairs, ([a, b, ipv6Prefix]) => {
        const [keyA, keyB] = [a, b].map((all) =>
          addressKey(all.map((group) => group.toString(16)).join(':'), { ipv6Prefix }),
        );
        expect(keyA === keyB).toBe(bitsOf(a, ipv6Prefix) === bitsOf(b, ipv6Prefix));
      }),
    );
  });

  it.each([
    [{ ipv6Prefix: 0 }, '`ipv6Prefix` to be a whole number from 1 to 128, got 0'],
    [{ ipv6Prefix: 64.5 }, '`ipv6Prefix`'],
    [{ ipv4Prefix: 33 }, '`ipv4Prefix` to be a whole number from 1 to 32, got 33'],
  ])('refuses %j', (options, message) => {
    expect(() => addressKey('192.0.2.1', options)).toThrow(message);
  });
});
