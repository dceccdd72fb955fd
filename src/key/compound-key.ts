import { InvalidKeyError, show } from '../errors.js';

const SEPARATOR = '|';
const ESCAPED = /[|\\]/g;

/**
 * One key of several parts, such as a route and a client: `compoundKey('GET /orders', '192.0.2.1')` is
 * `GET /orders|192.0.2.1`. Different parts never give the same key, whatever they contain: `|` and `\` inside a part
 * are preceded by `\`.
 *
 * @throws {InvalidKeyError} where a part is not a string, or there is nothing to tell one key from another
 */
export function compoundKey(...parts: readonly string[]): string {
  for (const part of parts) {
    if (typeof part !== 'string') {
      throw new InvalidKeyError(`Expected every part of a key to be a string, got ${show(part)}.`);
    }
  }
  const key = parts.map((part) => part.replace(ESCAPED, '\\$&')).join(SEPARATOR);
  if (key === '') throw new InvalidKeyError('Expected a key of at least one part that is not empty, got none.');
  return key;
}
