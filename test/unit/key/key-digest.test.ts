import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { keyDigest } from '../../../src/key/key-digest.js';

const SECRET = 'sixteen bytes or more';

describe('the digest of a key', () => {
  const digest = keyDigest(SECRET);

  it('is the HMAC-SHA-256 of its UTF-8, cut to 144 bits', () => {
    const whole = createHmac('sha256', SECRET).update('user:é').digest('base64url');
    expect(digest('user:é')).toBe(whole.slice(0, 24));
  });

  it('is the same for the same key, secret given as text or as bytes, and another under another secret', () => {
    expect(keyDigest(new TextEncoder().encode(SECRET))('a')).toBe(digest('a'));
    expect(keyDigest('another secret of length')('a')).not.toBe(digest('a'));
  });

  it('tells long keys apart that begin alike, in a bounded length (C127)', () => {
    const long = 'x'.repeat(1_048_576);
    expect(digest(`${long}a`)).not.toBe(digest(`${long}b`));
    expect(digest(`${long}a`)).toHaveLength(24);
  });

  it('tells odd keys apart, and refuses those that UTF-8 would make alike (C131)', () => {
    const keys = ['a\u0000b', 'ab', '\r\n', '\n', 'e\u0301', '\u00e9', '\u{1f600}'];
    expect(new Set(keys.map(digest)).size).toBe(keys.length);
    for (const half of ['\ud800', 'a\udfff']) expect(() => digest(half)).toThrow('half a surrogate pair');
    expect(() => digest('')).toThrow('non-empty string');
  });

  it('takes a secret of 16 bytes or more, and shows none of it', () => {
    expect(() => keyDigest('hunter2')).toThrow('16 at least, got 7 bytes.');
    expect(() => keyDigest(undefined as never)).toThrow('got a value of type undefined');
    expect(() => keyDigest('hunter2')).not.toThrow('hunter2');
  });
});
