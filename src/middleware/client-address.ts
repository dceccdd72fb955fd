import { InvalidKeyError } from '../errors.js';
import { addressKey } from '../key/index.js';
import type { SetupWarnings } from './setup-warnings.js';

/** Whose word a framework takes for a client's address. */
export type ProxyTrust = 'nobody' | 'some' | 'everybody';

/** Where an adaptor finds the address of a request. */
export interface AddressSource<Request> {
  /** The client's address as the framework's own setting gives it, and nobody's guess. */
  addressOf(request: Request): string | undefined;
  /** What that setting is. */
  trustOf(request: Request): ProxyTrust;
  /** The X-Forwarded-For field as it came, only to notice that there is one. */
  forwardedFor(request: Request): unknown;
}

/**
 * The key of a request that was not given one: its client's address, IPv6 by network.
 *
 * @throws {InvalidKeyError} where there is no address, as on a Unix socket without a trusted proxy
 */
export function clientKey<Request>(
  request: Request,
  source: AddressSource<Request>,
  ipv6Prefix: number,
  warnings: SetupWarnings,
): string {
  const trust = source.trustOf(request);
  if (trust === 'everybody') warnings.tell('HEADGATE_ANY_PROXY_TRUSTED');
  if (trust === 'nobody' && source.forwardedFor(request) !== undefined) {
    warnings.tell('HEADGATE_FORWARDED_FOR_IGNORED');
  }
  const key = addressKey(source.addressOf(request) ?? '', { ipv6Prefix });
  if (key === undefined) {
    throw new InvalidKeyError(
      'Expected the client of this request to have an address, got none. Behind a proxy on a Unix socket, trust that ' +
        'proxy; otherwise give `key`.',
    );
  }
  return key;
}
