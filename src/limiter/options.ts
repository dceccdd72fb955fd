import type { CeilingStore } from '../ceiling/ceiling-store.js';
import { InvalidOptionError, show } from '../errors.js';
import type { PolicyDocument } from '../policy/policy.js';
import type { PolicySource } from '../policy/policy-source.js';
import type { Observer } from '../telemetry/observer.js';
import type { Random, Time } from '../time.js';
import type { Milliseconds } from '../units.js';

/** Options of `createLimiter`. `Redis` and `Nats` are the shapes of the clients it takes. */
export interface LimiterOptions<Redis = unknown, Nats = unknown> {
  /** Policies as given in code, version 0: in force until a newer version is published. Default: none. */
  readonly policies?: readonly PolicyDocument[];
  /** Where ceilings are kept: a URL (`redis://`, `rediss://`) or a client of yours. Default: in this process. */
  readonly redis?: string | Redis;
  /** Where policies are published: one or more URLs (`nats://`, comma-separated) or a connection of yours. Default: nowhere. */
  readonly nats?: string | Nats;
  /** A ceiling store of your own, such as one of `headgate/cluster`. Not together with `redis`. */
  readonly ceiling?: CeilingStore;
  /** A policy source of your own. Not together with `nats`. */
  readonly policySource?: PolicySource;
  /** A label for people, in metrics and traces. Default: a random one. */
  readonly instanceId?: string;
  /** The fleet this limiter counts itself in, for the outage mode `share`. Default `'default'`. */
  readonly group?: string;
  /** How large a share it gets of a ceiling that is asked for more than it has: 1 to 1,000, whole. Default 1. */
  readonly weight?: number;
  /** How long a call to the ceiling store may take before it is given up: 5 to 120 ms. Default 100. */
  readonly callDeadlineMs?: Milliseconds;
  /** How often the ceiling store is asked which keys have been blocked, unblocked or reset: 50 to 60,000 ms. Default 1,000. */
  readonly blocksEveryMs?: Milliseconds;
  /** Most keys held for each policy; the rest share one overflow bucket. 1 to 16,000,000, whole. Default 100,000. */
  readonly maxKeys?: number;
  /**
   * Keys leave this process as digests under this secret, 16 bytes at least (HMAC-SHA-256, 144 bits), and never as they are:
   * neither to Redis nor to the primary of a cluster. The same secret on all instances. Default: as they are.
   */
  readonly keys?: { readonly hash: string | Uint8Array };
  /** First part of every key in Redis: 1 to 32 of A–Z a–z 0–9 `_` `-`. Default `'hg'`. */
  readonly keyPrefix?: string;
  /**
   * What a store without data means. `'empty'` (default for Redis): it may have lost its data, so buckets start empty
   * and earn. `'full'` (default in this process): nothing was there before.
   */
  readonly newStore?: 'empty' | 'full';
  /** Whether to look for `@opentelemetry/api` and use it. Default `true`. */
  readonly telemetry?: boolean;
  /** Told of everything instead of OpenTelemetry. */
  readonly observer?: Observer;
  /** Told of what went wrong without being anybody's call. Default: a process warning, once for each message. */
  readonly onTrouble?: (error: Error) => void;
  /** Clocks and timers. Default: the process's own. */
  readonly time?: Time;
  /** Chance, for jitter. Default `Math.random`. */
  readonly random?: Random;
}

type Check = readonly [name: keyof LimiterOptions, expected: string, fits: (value: never) => boolean];

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;
const hasMethods =
  (...names: readonly string[]) =>
  (value: unknown): boolean =>
    isObject(value) && names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');
const isWhole = (least: number, most: number) => (value: number) =>
  Number.isSafeInteger(value) && value >= least && value <= most;
const isLabel = (value: string): boolean => typeof value === 'string' && value.length > 0 && value.length <= 128;

const CHECKS: readonly Check[] = [
  ['policies', 'an array of policies', (value) => Array.isArray(value)],
  [
    'redis',
    'a redis:// or rediss:// URL, or a client',
    (value: unknown) => isObject(value) || isUrl(value, ['redis:', 'rediss:']),
  ],
  [
    'nats',
    'a nats:// URL, or a connection',
    (value: unknown) => hasMethods('subscribe')(value) || (typeof value === 'string' && value !== ''),
  ],
  [
    'ceiling',
    'a ceiling store (ready, lease, heartbeat, close)',
    (value: unknown) => hasMethods('lease', 'heartbeat', 'close')(value) && 'ready' in (value as object),
  ],
  ['policySource', 'a policy source (watch, list, publish, close)', hasMethods('watch', 'list', 'publish', 'close')],
  ['instanceId', 'a text of 1 to 128 characters', isLabel],
  ['group', 'a text of 1 to 128 characters', isLabel],
  ['weight', 'a whole number from 1 to 1,000', isWhole(1, 1_000)],
  [
    'callDeadlineMs',
    'a number of ms from 5 to 120',
    (value: unknown) => typeof value === 'number' && value >= 5 && value <= 120,
  ],
  ['blocksEveryMs', 'a whole number from 50 to 60,000', isWhole(50, 60_000)],
  ['maxKeys', 'a whole number from 1 to 16,000,000', isWhole(1, 16_000_000)],
  ['keys', '{ hash: a secret }', (value) => isObject(value) && Object.keys(value).join() === 'hash'],
  [
    'keyPrefix',
    '1 to 32 characters of A–Z a–z 0–9 _ -',
    (value: unknown) => typeof value === 'string' && /^[A-Za-z0-9_-]{1,32}$/.test(value),
  ],
  ['newStore', "'empty' or 'full'", (value: string) => value === 'empty' || value === 'full'],
  ['telemetry', 'true or false', (value) => typeof value === 'boolean'],
  ['observer', 'an observer', isObject],
  ['onTrouble', 'a function', (value) => typeof value === 'function'],
  ['time', 'clocks and timers (now, wallNow, after)', hasMethods('now', 'wallNow', 'after')],
  ['random', 'a function', (value) => typeof value === 'function'],
];

/** Checks the options of `createLimiter`; changes nothing. */
export function checkLimiterOptions(options: LimiterOptions): void {
  if (!isObject(options) || Array.isArray(options))
    throw new InvalidOptionError(`Expected the options of \`createLimiter\` to be an object, got ${show(options)}.`);
  const given = options as Record<string, unknown>;
  for (const name of Object.keys(given)) {
    const check = CHECKS.find(([known]) => known === name);
    if (!check) {
      const known = CHECKS.map(([option]) => option).join(', ');
      throw new InvalidOptionError(`Expected an option of \`createLimiter\` (${known}), got ${show(name)}.`);
    }
    const value = given[name];
    if (value === undefined) continue;
    if (!check[2](value as never))
      throw new InvalidOptionError(`Expected \`${name}\` to be ${check[1]}, got ${show(value)}.`);
  }
  for (const [a, b] of [
    ['redis', 'ceiling'],
    ['nats', 'policySource'],
  ] as const) {
    if (given[a] !== undefined && given[b] !== undefined) {
      throw new InvalidOptionError(`Expected \`${a}\` or \`${b}\`, got both.`);
    }
  }
}

function isUrl(value: unknown, protocols: readonly string[]): boolean {
  return typeof value === 'string' && URL.canParse(value) && protocols.includes(new URL(value).protocol);
}
