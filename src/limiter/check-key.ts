import { InvalidKeyError, show } from '../errors.js';

/** Longest key, in bytes of UTF-8. */
const MAX_KEY_BYTES = 512;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** @throws {InvalidKeyError} */
export function checkKey(key: unknown): void {
  if (typeof key !== 'string' || key === '')
    throw new InvalidKeyError(`Expected \`key\` to be a non-empty string, got ${show(key)}.`);
  // All of them are the same bytes in UTF-8, so keys that differ here would share a bucket at the store.
  if (LONE_SURROGATE.test(key)) {
    throw new InvalidKeyError('Expected `key` to be well-formed text, got one with half a surrogate pair.');
  }
  // At most three bytes a UTF-16 unit: short keys need no counting.
  if (key.length * 3 <= MAX_KEY_BYTES) return;
  const bytes = new TextEncoder().encode(key).length;
  if (bytes > MAX_KEY_BYTES) {
    throw new InvalidKeyError(`Expected \`key\` to be at most ${MAX_KEY_BYTES} bytes of UTF-8, got ${bytes} bytes.`);
  }
}
