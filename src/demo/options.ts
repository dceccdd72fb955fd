import { fileFlag, numberFlag, parseFlags, UsageError, wholeNumberFlag } from '../terminal/flags.js';

/** What the command line asks for. */
export interface DemoOptions {
  readonly instances: number;
  readonly seconds: number;
  /** Tokens a second of the ceiling. */
  readonly rate: number | undefined;
  readonly burst: number | undefined;
  readonly redis: string | undefined;
  readonly nats: string | undefined;
  readonly json: boolean;
  readonly report: string | undefined;
  readonly replay: string | undefined;
  readonly speed: number | undefined;
  readonly help: boolean;
}

export const USAGE = `Usage: npm run demo -- [options]

A fleet of processes shares one hard ceiling: it is offered three times as much as the ceiling
allows, gets a tighter policy half way, loses an instance to SIGKILL, and is judged at the end.
The exit code is 1 if any window was above the bound, 2 if the options are wrong, 3 if the demo
could not be run.

  --instances N       processes in the fleet, 1 to 64                              (8)
  --seconds S         how long load is offered, 2 to 600                           (10)
  --rate R            tokens a second of the ceiling                               (1000)
  --burst B           most tokens at once                                          (one second's)
  --redis URL         keep the ceiling in this Redis, not in the primary's memory
  --nats URL          keep the policies in this NATS server, not in the primary's memory
  --json              print the verdict as JSON (progress goes to stderr)
  --report FILE.html  write a page with the rate of each instance over time
  --help              show this

On real input, spread over the fleet with a limit for each client beside one for all:

  --replay FILE.log   an access log in combined format; demo/access.log is one
  --speed K           seconds of the log in one of the replay     (so that it takes 14 s)
  --rate R            tokens an hour for all, in the log's time   (90 % of its mean rate)
  --burst B           most tokens at once for all                 (four hours' worth)
`;

const FLAGS = {
  instances: { type: 'string' },
  seconds: { type: 'string' },
  rate: { type: 'string' },
  burst: { type: 'string' },
  redis: { type: 'string' },
  nats: { type: 'string' },
  json: { type: 'boolean' },
  report: { type: 'string' },
  replay: { type: 'string' },
  speed: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** @throws UsageError where an option is unknown, or not what was expected. */
export function readOptions(args: readonly string[]): DemoOptions {
  const given = parseFlags(args, FLAGS).values;
  const options = {
    instances: wholeNumberFlag('instances', given.instances, 1, 64) ?? 8,
    seconds: numberFlag('seconds', given.seconds, 2, 600) ?? 10,
    rate: numberFlag('rate', given.rate, 1, 1e6),
    burst: numberFlag('burst', given.burst, 1, 1e9),
    redis: url('redis', given.redis, ['redis:', 'rediss:']),
    nats: url('nats', given.nats, ['nats:', 'tls:']),
    json: given.json ?? false,
    report: fileFlag('report', given.report),
    replay: fileFlag('replay', given.replay),
    speed: numberFlag('speed', given.speed, 1, 1e7),
    help: given.help ?? false,
  };
  if (options.speed !== undefined && options.replay === undefined) {
    throw new UsageError('Expected --speed together with --replay, got it alone.');
  }
  if (options.replay !== undefined) {
    for (const name of ['redis', 'nats', 'report', 'seconds'] as const) {
      if (given[name] !== undefined) throw new UsageError(`Expected --replay without --${name}, got both.`);
    }
  }
  return options;
}

function url(name: string, text: string | undefined, protocols: readonly string[]): string | undefined {
  if (text === undefined) return undefined;
  if (URL.canParse(text) && protocols.includes(new URL(text).protocol)) return text;
  throw new UsageError(`Expected --${name} to be a URL that begins with ${protocols[0]}//, got "${text}".`);
}
