import { BlockList, isIPv4 } from 'node:net';
import { InvalidOptionError, show } from '../errors.js';
import { normalAddress } from './address.js';

/** Networks that can be named instead of written out. */
const NAMED: ReadonlyMap<string, readonly string[]> = new Map([
  ['loopback', ['127.0.0.0/8', '::1/128']],
  ['link-local', ['169.254.0.0/16', 'fe80::/10']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']],
]);

/** The proxies whose word is taken for where a request came from. */
export interface TrustedProxies {
  /** Whether `address` is one of them; false for a text that is not an address. */
  has(address: string): boolean;
  /**
   * The client of a request: the first address that is not a trusted proxy's, from the nearest on, however long the
   * chain is. Only that one was seen by somebody trusted; what stands further away may be made up.
   *
   * Where an entry is no address (`unknown`, an obfuscated name), nobody trusted says who was there: the answer is then
   * the proxy that reported it. If all are trusted, the farthest.
   *
   * @param peer the address at the other end of the connection, such as `socket.remoteAddress`
   * @param forwarded what proxies have reported, farthest first, as `X-Forwarded-For` lists it
   * @returns in the spelling of {@link normalAddress}; `undefined` where `peer` is no address
   */
  clientOf(peer: string, forwarded: readonly string[]): string | undefined;
}

/**
 * @param ranges addresses, networks (`10.0.0.0/8`, `2001:db8::/32`), and the names `loopback`, `link-local`, `private`
 * @throws {InvalidOptionError}
 */
export function trustedProxies(ranges: readonly string[]): TrustedProxies {
  if (!Array.isArray(ranges)) {
    throw new InvalidOptionError(`Expected the trusted proxies to be an array of networks, got ${show(ranges)}.`);
  }
  const list = new BlockList();
  for (const range of ranges) for (const network of NAMED.get(range) ?? [range]) addNetwork(list, network);
  const isTrusted = (address: string): boolean => list.check(address, familyOf(address));
  return {
    has(address) {
      const normal = normalAddress(address);
      return normal !== undefined && isTrusted(normal);
    },
    clientOf(peer, forwarded) {
      let client = normalAddress(peer);
      for (let i = forwarded.length - 1; i >= 0 && client !== undefined && isTrusted(client); i--) {
        const next = normalAddress((forwarded[i] as string).trim());
        if (next === undefined) break;
        client = next;
      }
      return client;
    },
  };
}

function addNetwork(list: BlockList, network: string): void {
  const [text = '', length, ...more] = typeof network === 'string' ? network.split('/') : [];
  const address = normalAddress(text);
  const family = familyOf(address ?? '');
  const most = family === 'ipv4' ? 32 : 128;
  const bits = length === undefined ? most : /^\d{1,3}$/.test(length) ? Number(length) : -1;
  if (address === undefined || more.length > 0 || bits < 0 || bits > most) {
    const names = [...NAMED.keys()].join(', ');
    throw new InvalidOptionError(
      `Expected a trusted proxy to be an address, a network such as '10.0.0.0/8', or one of ${names}, got ${show(network)}.`,
    );
  }
  list.addSubnet(address, bits, family);
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv4(address) ? 'ipv4' : 'ipv6';
}
