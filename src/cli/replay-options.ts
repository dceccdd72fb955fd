import { KEY_KINDS, type KeyKind, type RequestFields } from '../replay/index.js';
import { fileFlag, parseFlags, UsageError, wholeNumberFlag } from '../terminal/flags.js';
import { type Milliseconds, periodMs } from '../units.js';

export const REPLAY_USAGE = `Usage: headgate replay LOG --policy FILE.json [options]

What would this policy have done to past traffic? LOG is an access log in common or combined log
format, or has one JSON object a line; plain or gzipped; - is standard input. It is read once, in
memory that does not grow with it. FILE.json has one policy, and may have comments.

  --policy FILE.json   the policy
  --format FORMAT      access or json                                (told by the first line)
  --key KIND           what is limited: address, prefix, path, all, or field: the text of a field
                       as it is                            (address; of JSON lines: field)
  --key-field NAME     the field that the key is made of   (address or path; of JSON lines: none)
  --prefix4 BITS       of an IPv4 address that stand for one client, for --key prefix        (24)
  --prefix6 BITS       of an IPv6 address                                                    (64)
  --cost-field NAME    the field that says how many tokens a request costs             (1 each)
  --time NAME          of JSON lines, the field that says when                             (time)
  --reorder PERIOD     how much earlier than a line before it a line may be                 (10s)
  --instances N        over how many instances requests are dealt out, 1 to 1000              (1)
  --max-keys N         keys remembered, 1000 to 10000000                                 (200000)
  --json               print the report as JSON
  --report FILE.html   write a page with a plot, which needs nothing but itself

Fields of an access log: address, user, method, path, status, bytes, referer, agent. Names of
fields of JSON lines may lead into objects: client.address.
`;

const FLAGS = {
  policy: { type: 'string' },
  format: { type: 'string' },
  key: { type: 'string' },
  'key-field': { type: 'string' },
  prefix4: { type: 'string' },
  prefix6: { type: 'string' },
  'cost-field': { type: 'string' },
  time: { type: 'string' },
  reorder: { type: 'string' },
  instances: { type: 'string' },
  'max-keys': { type: 'string' },
  json: { type: 'boolean' },
  report: { type: 'string' },
} as const;

export type LogFormat = 'access' | 'json';

/** What the command line asks for. */
export interface ReplayCommandOptions {
  readonly log: string;
  readonly policy: string;
  /** `undefined`: told by the first line. */
  readonly format: LogFormat | undefined;
  readonly timeField: string;
  readonly reorderMs: Milliseconds;
  readonly instances: number;
  readonly maxKeys: number;
  readonly json: boolean;
  readonly report: string | undefined;
  /** How requests are read from a log of this format. @throws UsageError */
  fields(format: LogFormat): RequestFields;
}

/** @throws UsageError where an option is unknown, or not what was expected. */
export function readReplayOptions(args: readonly string[]): ReplayCommandOptions {
  const { values, positionals } = parseFlags(args, FLAGS, true);
  const [log, ...more] = positionals;
  if (log === undefined || more.length > 0)
    throw new UsageError(`Expected one log, got ${positionals.length}. See headgate replay --help`);
  const policy = fileFlag('policy', values.policy);
  if (policy === undefined) throw new UsageError('Expected --policy FILE.json, got none. See headgate replay --help');
  if (log === '-' && policy === '-')
    throw new UsageError('Expected at most one of LOG and --policy to be standard input, got both.');
  const key = choice('key', values.key, KEY_KINDS);
  return {
    log,
    policy,
    format: choice('format', values.format, ['access', 'json']),
    timeField: values.time ?? 'time',
    reorderMs: period('reorder', values.reorder) ?? 10_000,
    instances: wholeNumberFlag('instances', values.instances, 1, 1_000) ?? 1,
    maxKeys: wholeNumberFlag('max-keys', values['max-keys'], 1_000, 10_000_000) ?? 200_000,
    json: values.json ?? false,
    report: fileFlag('report', values.report),
    fields: (format) => ({
      ...keyFields(format, key, values['key-field']),
      costField: values['cost-field'],
      prefix4: wholeNumberFlag('prefix4', values.prefix4, 1, 32) ?? 24,
      prefix6: wholeNumberFlag('prefix6', values.prefix6, 1, 128) ?? 64,
    }),
  };
}

function keyFields(format: LogFormat, kind: KeyKind | undefined, field: string | undefined) {
  const key = kind ?? (format === 'json' ? 'field' : 'address');
  if (key === 'all') return { key, keyField: '' };
  if (format === 'access' && key !== 'field') return { key, keyField: field ?? (key === 'path' ? 'path' : 'address') };
  if (field === undefined)
    throw new UsageError(`Expected --key-field with --key ${key} and ${format} lines, or --key all, got none.`);
  return { key, keyField: field };
}

function choice<T extends string>(name: string, text: string | undefined, choices: readonly T[]): T | undefined {
  const found = choices.find((choice) => choice === text);
  if (found !== undefined || text === undefined) return found;
  throw new UsageError(`Expected --${name} to be one of ${choices.join(', ')}, got "${text}".`);
}

function period(name: string, text: string | undefined): Milliseconds | undefined {
  if (text === undefined) return undefined;
  const ms = text === '0' ? 0 : periodMs(text);
  if (ms !== undefined && ms <= 86_400_000) return ms;
  throw new UsageError(`Expected --${name} to be a time up to a day, such as 0, 500ms, 10s, 5m, got "${text}".`);
}
