import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { InvalidKeyError, InvalidOptionError, show } from '../errors.js';

/** Bytes of the digest kept: 144 bits. Among 2^50 keys two share a digest with a probability of 2^-45. */
const DIGEST_BYTES = 18;
const LEAST_SECRET_BYTES = 16;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Turns keys into digests of 24 characters (HMAC-SHA-256 under `secret`, base64url): the same key always has the same
 * one, and whoever sees it can neither read the key nor, without the secret, try out which key it is. A plain hash
 * would not do: there are few enough addresses and phone numbers to hash them all.
 *
 * Keys of any length are taken, so it is also how a long text becomes a key. The whole fleet needs one secret;
 * another one is another set of buckets, which all start anew.
 *
 * @param secret at least 16 bytes
 * @throws {InvalidOptionError} from here, {@link InvalidKeyError} from the function it answers
 */
export function keyDigest(secret: string | Uint8Array): (key: string) => string {
  const hmacKey = secretKey(secret);
  return (key) => {
    if (typeof key !== 'string' || key === '') {
      throw new InvalidKeyError(`Expected \`key\` to be a non-empty string, got ${show(key)}.`);
    }
    // All of them are the same bytes in UTF-8, so that keys that differ here would share a digest.
    if (LONE_SURROGATE.test(key)) {
      throw new InvalidKeyError('Expected `key` to be well-formed text, got one with half a surrogate pair.');
    }
    return createHmac('sha256', hmacKey).update(key, 'utf8').digest().subarray(0, DIGEST_BYTES).toString('base64url');
  };
}

function secretKey(secret: unknown): KeyObject {
  const bytes = typeof secret === 'string' ? Buffer.from(secret, 'utf8') : secret;
  if (!(bytes instanceof Uint8Array) || bytes.length < LEAST_SECRET_BYTES) {
    // Never shown, not even in part: only how it falls short.
    const got = bytes instanceof Uint8Array ? `${bytes.length} bytes` : `a value of type ${typeof secret}`;
    throw new InvalidOptionError(
      `Expected the secret for keys to be a string or bytes, ${LEAST_SECRET_BYTES} at least, got ${got}.`,
    );
  }
  return createSecretKey(bytes);
}
