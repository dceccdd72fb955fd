import { InvalidPolicyError, show } from '../errors.js';
import { parsePolicy } from '../policy/parse-policy.js';
import { type Policy, termsFor } from '../policy/policy.js';
import { MICRO, type Milliseconds, type Tokens } from '../units.js';
import { type ParsedEvent, parseEvent } from './parse-event.js';
import type { Scenario } from './scenario.js';
import { InvalidScenarioError, ScenarioFields } from './scenario-fields.js';

/** A scenario with every default filled in and every name looked up. */
export interface Plan {
  readonly seed: number;
  readonly durationMs: Milliseconds;
  readonly warmUpMs: Milliseconds;
  readonly sampleMs: Milliseconds;
  readonly policies: readonly Policy[];
  readonly groups: readonly Group[];
  readonly network: Network;
  readonly newStore: 'full' | 'empty';
  readonly callDeadlineMs: Milliseconds;
  readonly events: readonly ParsedEvent[];
}

export interface Group {
  readonly name: string;
  readonly instances: number;
  readonly weight: number;
  readonly drift: number;
  readonly traffic: readonly Traffic[];
}

export interface Traffic {
  readonly shape: 'poisson' | 'steady' | 'bursts' | 'cron';
  /** Time between calls, or between bursts, on average. */
  readonly gapMs: Milliseconds;
  readonly size: number;
  readonly spreadMs: Milliseconds;
  readonly fromMs: Milliseconds;
  readonly untilMs: Milliseconds;
  readonly policy: string;
  readonly key: string;
  /** 0: only `key`. */
  readonly keys: number;
  readonly skew: number;
  readonly cost: Tokens;
  readonly verb: 'acquire' | 'tryAcquire';
  readonly maxWaitMs: Milliseconds | undefined;
  readonly retries: number;
  readonly retryAfter: 'exact' | 'seconds' | 'spread';
}

export interface Network {
  readonly roundTripMs: Milliseconds;
  readonly jitterMs: Milliseconds;
  readonly loss: number;
  readonly duplication: number;
  readonly policyDelayMs: Milliseconds;
}

const SCENARIO_FIELDS = [
  'name',
  'seed',
  'duration',
  'warmUp',
  'policies',
  'fleet',
  'network',
  'newStore',
  'callDeadlineMs',
  'events',
  'sample',
];
const GROUP_FIELDS = ['name', 'instances', 'weight', 'drift', 'traffic'];
const TRAFFIC_FIELDS = [
  'shape',
  'rate',
  'size',
  'every',
  'spread',
  'from',
  'until',
  'policy',
  'key',
  'cost',
  'verb',
  'maxWaitMs',
  'retries',
  'retryAfter',
];
const NETWORK_FIELDS = ['roundTripMs', 'jitterMs', 'loss', 'duplication', 'policyDelayMs'];

/**
 * Checks a scenario and fills in what it leaves out. Changes nothing in it.
 *
 * @throws InvalidScenarioError that names the field, what was expected and what was given.
 */
export function parseScenario(scenario: Scenario): Plan {
  const fields = new ScenarioFields(scenario, [], SCENARIO_FIELDS);
  if (fields.get('name') !== undefined) fields.text('name', '');
  const durationMs = fields.period('duration', undefined, false);
  const warmUpMs = fields.period('warmUp', 0, true);
  if (warmUpMs >= durationMs) throw fields.wrong('warmUp', 'shorter than `duration`');
  const policies = fields.list('policies', 'an array of at least one policy').map(readPolicy);
  const names = new Set<string>();
  const groups = fields.list('fleet', 'an array of at least one group').map((group, index) => {
    const read = readGroup(group, index, policies, durationMs);
    if (names.has(read.name))
      throw new InvalidScenarioError(['fleet', index, 'name'], 'a name of its own', show(read.name));
    names.add(read.name);
    return read;
  });
  const events = fields.get('events') === undefined ? [] : fields.list('events', 'an array of events');
  return {
    seed: fields.whole('seed', 1, 0, Number.MAX_SAFE_INTEGER),
    durationMs,
    warmUpMs,
    sampleMs: fields.period('sample', 100, false),
    policies,
    groups,
    network: readNetwork(fields.get('network')),
    newStore: fields.choice('newStore', ['full', 'empty'], 'full'),
    callDeadlineMs: fields.number('callDeadlineMs', 100, 'a number of ms from 5 to 120', (n) => n >= 5 && n <= 120),
    events: events.map((event, index) => parseEvent(event, index, { durationMs, policies, groups: names })),
  };
}

function readPolicy(document: unknown, index: number): Policy {
  try {
    return parsePolicy(document);
  } catch (error) {
    if (!(error instanceof InvalidPolicyError)) throw error;
    throw InvalidScenarioError.ofPolicy(['policies', index], error);
  }
}

function readGroup(value: unknown, index: number, policies: readonly Policy[], durationMs: Milliseconds): Group {
  const path = ['fleet', index];
  const fields = new ScenarioFields(value, path, GROUP_FIELDS);
  const given = fields.get('traffic');
  const traffic = Array.isArray(given)
    ? given.map((one, place) => readTraffic(one, [...path, 'traffic', place], policies, durationMs))
    : [readTraffic(given, [...path, 'traffic'], policies, durationMs)];
  return {
    name: fields.text('name', `group ${index + 1}`),
    instances: fields.whole('instances', undefined, 1, 100_000),
    weight: fields.whole('weight', 1, 1, 1_000),
    drift: fields.number('drift', 0, 'a number from -0.01 to 0.01', (n) => Math.abs(n) <= 0.01),
    traffic,
  };
}

function readTraffic(
  value: unknown,
  path: readonly (string | number)[],
  policies: readonly Policy[],
  durationMs: Milliseconds,
): Traffic {
  const fields = new ScenarioFields(value, path, TRAFFIC_FIELDS);
  const shape = fields.choice('shape', ['poisson', 'steady', 'bursts', 'cron'], 'poisson');
  const single = shape === 'poisson' || shape === 'steady';
  for (const name of single ? ['size', 'every', 'spread'] : ['rate']) {
    if (fields.get(name) !== undefined) throw fields.wrong(name, `left out where \`shape\` is ${show(shape)}`);
  }
  const perSecond = single ? fields.number('rate', undefined, 'a positive number of calls a second', (n) => n > 0) : 0;
  const name = fields.text('policy', (policies[0] as Policy).name);
  const policy = policies.find((policy) => policy.name === name);
  if (!policy) throw fields.wrong('policy', `one of ${policies.map((known) => show(known.name)).join(', ')}`);
  const key = readKey(fields);
  const cost = fields.number('cost', 1, 'a positive number with at most 6 decimals', isAmount);
  const { local, ceiling } = termsFor(policy, key.key);
  const most = Math.min(local?.burst ?? Number.POSITIVE_INFINITY, (ceiling?.burst ?? Number.POSITIVE_INFINITY) / MICRO);
  if (cost > most) throw fields.wrong('cost', `at most the burst of the policy (${most})`);
  const fromMs = fields.period('from', 0, true);
  const untilMs = fields.period('until', durationMs, false);
  if (untilMs <= fromMs) throw fields.wrong('until', 'after `from`');
  const maxWaitMs = fields.get('maxWaitMs');
  return {
    shape,
    gapMs: single ? 1_000 / perSecond : fields.period('every', undefined, false),
    size: single ? 1 : fields.whole('size', undefined, 1, 1_000_000),
    spreadMs: fields.period('spread', 0, true),
    fromMs,
    untilMs,
    policy: name,
    ...key,
    cost,
    verb: fields.choice('verb', ['acquire', 'tryAcquire'], 'acquire'),
    maxWaitMs:
      maxWaitMs === undefined ? undefined : fields.number('maxWaitMs', 0, 'a number of ms, 0 or more', (n) => n >= 0),
    retries: fields.whole('retries', 0, 0, 1_000),
    retryAfter: fields.choice('retryAfter', ['exact', 'seconds', 'spread'], 'exact'),
  };
}

function readKey(fields: ScenarioFields): Pick<Traffic, 'key' | 'keys' | 'skew'> {
  const given = fields.get('key');
  if (typeof given !== 'object') return { key: fields.text('key', 'all'), keys: 0, skew: 0 };
  const range = new ScenarioFields(given, [...fields.path, 'key'], ['count', 'skew']);
  return {
    key: '',
    keys: range.whole('count', undefined, 1, 100_000_000),
    skew: range.number('skew', 0, 'a number from 0 to 4', (n) => n >= 0 && n <= 4),
  };
}

function readNetwork(value: unknown): Network {
  const fields = new ScenarioFields(value ?? {}, ['network'], NETWORK_FIELDS);
  const time = (name: string, fallback: number) =>
    fields.number(name, fallback, 'a number of ms, 0 or more', (n) => n >= 0);
  const chance = (name: string) => fields.number(name, 0, 'a number from 0 to 1', (n) => n >= 0 && n <= 1);
  return {
    roundTripMs: time('roundTripMs', 1),
    jitterMs: time('jitterMs', 0),
    loss: chance('loss'),
    duplication: chance('duplication'),
    policyDelayMs: time('policyDelayMs', 20),
  };
}

function isAmount(value: number): boolean {
  return value > 0 && Math.abs(Math.round(value * MICRO) / MICRO - value) <= value * Number.EPSILON;
}
