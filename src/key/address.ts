import { isIPv4, isIPv6, SocketAddress } from 'node:net';
import { InvalidOptionError, show } from '../errors.js';

/** Which part of an address stands for one client. */
export interface AddressKeyOptions {
  /** Leading bits of an IPv6 address, 1 to 128. Default 64: what one network is given, and one host can roam in. */
  readonly ipv6Prefix?: number;
  /** Leading bits of an IPv4 address, 1 to 32. Default 32: the whole address. */
  readonly ipv4Prefix?: number;
}

/** Where IPv4 addresses lie in IPv6: mapped (RFC 4291) and translated (RFC 6052), each followed by the 32 bits. */
const MAPPED = [0, 0, 0, 0, 0, 0xffff];
const TRANSLATED = [0x64, 0xff9b, 0, 0, 0, 0];

/**
 * The one spelling of an IP address, or `undefined` for a text that is not one: never an error, whatever it is given.
 *
 * IPv4 as dotted decimals; IPv6 in lower case with its longest run of zeros left out (RFC 5952). An IPv4 address written
 * as IPv6 (`::ffff:192.0.2.1`, `64:ff9b::c000:201`) is that IPv4 address. A port (`192.0.2.1:80`, `[2001:db8::1]:80`)
 * is cut off, and so is a zone (`fe80::1%eth0`), which means nothing outside its host and whoever writes a header can
 * make up. Octets with leading zeros are refused: some read them as octal.
 */
export function normalAddress(text: string): string | undefined {
  if (typeof text !== 'string') return undefined;
  if (isIPv4(text)) return text;
  const bare = withoutPort(text);
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return undefined;
  const { address } = new SocketAddress({ address: bare, family: 'ipv6' });
  return embeddedIPv4(address) ?? address;
}

/**
 * A limiter's key for a client's address: `192.0.2.1`, or `2001:db8:1:2::/64`, so that whoever has a whole network of
 * IPv6 addresses has one bucket all the same. `undefined` for a text that is not an address: decide what such callers
 * share, and never use the text itself.
 *
 * @throws {InvalidOptionError}
 */
export function addressKey(text: string, options: AddressKeyOptions = {}): string | undefined {
  const ipv6Prefix = prefixLength('ipv6Prefix', options.ipv6Prefix ?? 64, 128);
  const ipv4Prefix = prefixLength('ipv4Prefix', options.ipv4Prefix ?? 32, 32);
  const address = normalAddress(text);
  if (address === undefined) return undefined;
  if (isIPv4(address)) {
    if (ipv4Prefix === 32) return address;
    const octets = masked(address.split('.').map(Number), ipv4Prefix, 8);
    return `${octets.join('.')}/${ipv4Prefix}`;
  }
  if (ipv6Prefix === 128) return address;
  const network = masked(groupsOf(address), ipv6Prefix, 16).map((group) => group.toString(16));
  return `${new SocketAddress({ address: network.join(':'), family: 'ipv6' }).address}/${ipv6Prefix}`;
}

/** Cuts `:port` off an IPv4 address, and `[…]` or `[…]:port` from around an IPv6 one. Anything else is left as it is. */
function withoutPort(text: string): string {
  const end = text.lastIndexOf(':');
  if (text.startsWith('[')) {
    if (text.endsWith(']')) return text.slice(1, -1);
    return text[end - 1] === ']' && isPort(text.slice(end + 1)) ? text.slice(1, end - 1) : text;
  }
  const isOnlyColon = end !== -1 && text.indexOf(':') === end;
  return isOnlyColon && isPort(text.slice(end + 1)) ? text.slice(0, end) : text;
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535;
}

function embeddedIPv4(address: string): string | undefined {
  const groups = groupsOf(address);
  const isIn = (network: readonly number[]): boolean => network.every((group, i) => groups[i] === group);
  if (!isIn(MAPPED) && !isIn(TRANSLATED)) return undefined;
  const [high = 0, low = 0] = groups.slice(6);
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}

/** The eight 16-bit groups of a well-formed IPv6 address. */
function groupsOf(address: string): number[] {
  const [left = '', right] = address.split('::');
  const head = groupsIn(left);
  if (right === undefined) return head;
  const tail = groupsIn(right);
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

function groupsIn(part: string): number[] {
  if (part === '') return [];
  return part.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}

/** Keeps the first `bits` of units of `width` bits each, and zeroes the rest. */
function masked(units: readonly number[], bits: number, width: number): number[] {
  return units.map((unit, i) => {
    const kept = Math.min(width, Math.max(0, bits - i * width));
    return (unit >> (width - kept)) << (width - kept);
  });
}

function prefixLength(name: keyof AddressKeyOptions, value: number, most: number): number {
  if (!Number.isInteger(value) || value < 1 || value > most) {
    throw new InvalidOptionError(`Expected \`${name}\` to be a whole number from 1 to ${most}, got ${show(value)}.`);
  }
  return value;
}
