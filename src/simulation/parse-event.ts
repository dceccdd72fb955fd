import { InvalidPolicyError, show } from '../errors.js';
import { parsePolicy } from '../policy/parse-policy.js';
import type { Policy, PolicyDocument } from '../policy/policy.js';
import type { Milliseconds } from '../units.js';
import type { Selection } from './scenario.js';
import { InvalidScenarioError, ScenarioFields } from './scenario-fields.js';

/** An event with its times in milliseconds and its defaults filled in. */
export type ParsedEvent = { readonly atMs: Milliseconds; readonly endsAtMs: Milliseconds } & (
  | { readonly kind: 'crash'; readonly instances: Selection; readonly restartAfterMs: Milliseconds | undefined }
  | { readonly kind: 'stall'; readonly instances: Selection }
  | { readonly kind: 'partition'; readonly instances: Selection; readonly from: 'store' | 'policies' | 'both' }
  | { readonly kind: 'slow'; readonly roundTripMs: Milliseconds }
  | { readonly kind: 'store-down' }
  | { readonly kind: 'store-loss' }
  | { readonly kind: 'stale-failover'; readonly lagMs: Milliseconds }
  | { readonly kind: 'evict'; readonly policy: string; readonly key: string }
  | { readonly kind: 'clock-step'; readonly byMs: Milliseconds }
  | { readonly kind: 'publish'; readonly policy: PolicyDocument }
);

/** What events may refer to. */
export interface EventContext {
  readonly durationMs: Milliseconds;
  readonly policies: readonly Policy[];
  readonly groups: ReadonlySet<string>;
}

const FIELDS = {
  crash: ['instances', 'restartAfter'],
  stall: ['instances', 'for'],
  partition: ['instances', 'from', 'for'],
  slow: ['roundTripMs', 'for'],
  'store-down': ['for'],
  'store-loss': [],
  'stale-failover': ['lag'],
  evict: ['policy', 'key'],
  'clock-step': ['by'],
  publish: ['policy'],
} as const;
const KINDS = Object.keys(FIELDS) as (keyof typeof FIELDS)[];
const ALL_FIELDS = [...new Set(['at', 'kind', ...Object.values(FIELDS).flat()])];

/** Checks one event of a scenario. */
export function parseEvent(value: unknown, index: number, context: EventContext): ParsedEvent {
  const path = ['events', index];
  const any = new ScenarioFields(value, path, ALL_FIELDS);
  if (any.get('kind') === undefined) throw any.wrong('kind', `one of ${KINDS.map(show).join(', ')}`);
  const kind = any.choice('kind', KINDS, 'crash');
  const fields = new ScenarioFields(value, path, ['at', 'kind', ...FIELDS[kind]]);
  const atMs = fields.period('at', undefined, true);
  if (atMs > context.durationMs) throw fields.wrong('at', 'within `duration`');
  const lasting = (FIELDS[kind] as readonly string[]).includes('for') ? fields.period('for', undefined, false) : 0;
  const when = { atMs, endsAtMs: atMs + lasting };
  switch (kind) {
    case 'crash': {
      const restarts = fields.get('restartAfter') !== undefined;
      const restartAfterMs = restarts ? fields.period('restartAfter', undefined, true) : undefined;
      return {
        ...when,
        endsAtMs: atMs + (restartAfterMs ?? 0),
        kind,
        instances: readSelection(fields, context),
        restartAfterMs,
      };
    }
    case 'stall':
      return { ...when, kind, instances: readSelection(fields, context) };
    case 'partition': {
      const from = fields.choice('from', ['store', 'policies', 'both'], 'store');
      return { ...when, kind, instances: readSelection(fields, context), from };
    }
    case 'slow':
      return {
        ...when,
        kind,
        roundTripMs: fields.number('roundTripMs', undefined, 'a number of ms, 0 or more', (n) => n >= 0),
      };
    case 'store-down':
    case 'store-loss':
      return { ...when, kind };
    case 'stale-failover': {
      const lagMs = fields.period('lag', undefined, true);
      if (lagMs > atMs) throw fields.wrong('lag', 'at most `at`');
      return { ...when, kind, lagMs };
    }
    case 'evict': {
      const policy = fields.text('policy', (context.policies[0] as Policy).name);
      checkPolicyName(fields, policy, context);
      return { ...when, kind, policy, key: fields.text('key', 'all') };
    }
    case 'clock-step':
      return { ...when, kind, byMs: fields.number('by', undefined, 'a number of ms, negative for back', () => true) };
    case 'publish':
      return { ...when, kind, policy: readPublished(fields, context) };
  }
}

function readSelection(fields: ScenarioFields, { groups }: EventContext): Selection {
  const value = fields.get('instances') ?? 'all';
  if (value === 'all') return 'all';
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
  if (typeof value !== 'object' || value === null)
    throw fields.wrong('instances', '"all", a positive whole number, or { groups: […] }');
  const chosen = new ScenarioFields(value, [...fields.path, 'instances'], ['groups']);
  const names = chosen.list('groups', 'an array of at least one name of a group').map((name, index) => {
    if (typeof name === 'string' && groups.has(name)) return name;
    const expected = `one of ${[...groups].map(show).join(', ')}`;
    throw new InvalidScenarioError([...chosen.path, 'groups', index], expected, show(name));
  });
  return { groups: names };
}

function readPublished(fields: ScenarioFields, context: EventContext): PolicyDocument {
  const document = fields.get('policy');
  try {
    const policy = parsePolicy(document);
    checkPolicyName(fields, policy.name, context);
    return policy.document;
  } catch (error) {
    if (!(error instanceof InvalidPolicyError)) throw error;
    throw InvalidScenarioError.ofPolicy([...fields.path, 'policy'], error);
  }
}

function checkPolicyName(fields: ScenarioFields, name: string, { policies }: EventContext): void {
  if (policies.some((policy) => policy.name === name)) return;
  const expected = `one of ${policies.map((known) => show(known.name)).join(', ')}`;
  throw new InvalidScenarioError([...fields.path, 'policy'], expected, show(name));
}
