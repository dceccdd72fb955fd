import { addressKey } from '../key/index.js';
import { MICRO, type Microseconds, type Tokens } from '../units.js';
import type { LineParser, LogLine } from './log-line.js';
import { pathOf } from './log-line.js';

/** What a log says of one request, as a limiter would have met it. */
export interface LoggedRequest {
  readonly at: Microseconds;
  readonly key: string;
  readonly cost: Tokens;
}

/** What a request's key is made of. */
export type KeyKind = 'address' | 'prefix' | 'path' | 'field' | 'all';
export const KEY_KINDS: readonly KeyKind[] = ['address', 'prefix', 'path', 'field', 'all'];

/** How the requests of a log are read. */
export interface RequestFields {
  readonly key: KeyKind;
  /** The field that has the address, the path or, for `field`, the key as it is. Not for `all`. */
  readonly keyField: string;
  /** The field that has the cost; `undefined`: each costs one token. */
  readonly costField: string | undefined;
  /** For `prefix`: leading bits that stand for one client. */
  readonly prefix4: number;
  readonly prefix6: number;
}

/** Longest key, in bytes of UTF-8: a limiter takes no longer one. */
const MAX_KEY_BYTES = 512;
/** A key of this many characters can't have more bytes than that. */
const SURELY_SHORT = MAX_KEY_BYTES / 3;

/** Reads a line as a request; answers why it can't where it can't. */
export function requestReader(parse: LineParser, fields: RequestFields): (line: string) => LoggedRequest | string {
  const { costField, keyField } = fields;
  return (text) => {
    const line = parse(text);
    if (typeof line === 'string') return line;
    const key = keyOf(line, fields);
    if (key === undefined) return `no ${fields.key === 'field' ? 'text' : fields.key} in its field "${keyField}"`;
    if (key.length > SURELY_SHORT && Buffer.byteLength(key) > MAX_KEY_BYTES)
      return `a key of more than ${MAX_KEY_BYTES} bytes`;
    const cost = costField === undefined ? 1 : costOf(line.field(costField));
    if (cost === undefined) return `no cost (positive, at most 6 decimals) in its field "${costField}"`;
    return { at: line.at, key, cost };
  };
}

function keyOf(line: LogLine, { key, keyField, prefix4, prefix6 }: RequestFields): string | undefined {
  if (key === 'all') return 'all';
  const value = line.field(keyField);
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
  if (typeof text !== 'string' || text === '') return undefined;
  switch (key) {
    case 'address':
      return addressKey(text, { ipv4Prefix: 32, ipv6Prefix: 128 });
    case 'prefix':
      return addressKey(text, { ipv4Prefix: prefix4, ipv6Prefix: prefix6 });
    case 'path':
      return pathOf(text);
    case 'field':
      return text;
  }
}

function costOf(value: unknown): Tokens | undefined {
  const cost = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof cost !== 'number' || !(cost > 0) || cost > Number.MAX_SAFE_INTEGER / MICRO) return undefined;
  return Number(cost.toFixed(6)) === cost ? cost : undefined;
}
