import { InvalidPolicyError, show } from '../errors.js';
import { type Concurrency, readConcurrency } from './concurrency.js';
import { Fields } from './fields.js';
import { FrozenMap } from './frozen-map.js';
import type {
  Algorithm,
  Inheritance,
  OutageMode,
  OverrideDocument,
  Policy,
  PolicyMode,
  StoreLoss,
  Terms,
} from './policy.js';
import { readTier, type Tier } from './tier.js';

/** Sizes and times that a policy is held to. */
const POLICY_LIMITS = {
  nameLength: 64,
  keyBytes: 512,
  leaseDurationMs: { default: 2_000, least: 50, most: 600_000 },
} as const;

const POLICY_FIELDS = [
  'name',
  'version',
  'local',
  'ceiling',
  'concurrency',
  'lease',
  'outage',
  'mode',
  'inheritance',
  'storeLoss',
  'overrides',
] as const;
/** The algorithms each tier can run so far. */
const RUNS: Readonly<Record<'local' | 'ceiling', readonly Algorithm[]>> = {
  local: ['token-bucket', 'leaky-bucket', 'fixed-window', 'sliding-window-log', 'sliding-window-counter'],
  ceiling: ['token-bucket', 'fixed-window', 'sliding-window-log', 'sliding-window-counter'],
};
const OVERRIDE_FIELDS = ['local', 'ceiling', 'concurrency', 'mode'] as const;
const MODES: readonly PolicyMode[] = ['enforce', 'shadow', 'allow', 'deny'];
const OUTAGE_MODES: readonly OutageMode[] = ['deny', 'allow', 'share'];
const STORE_LOSSES: readonly StoreLoss[] = ['quick', 'strict'];
const INHERITANCES: readonly Inheritance[] = ['as-is', 'proportional', 'additive', 'reset'];

const NAME = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;
const NAME_RULE = '1 to 64 characters of A–Z a–z 0–9 _ - . with no dot first, last or doubled';

/**
 * Checks a policy document and makes the policy of it. Every field is looked at, nothing is repaired, the caller's
 * object is neither kept nor changed, and the result is frozen through and through.
 *
 * @throws InvalidPolicyError naming the field, what was expected and what was given, at the first fault.
 */
export function parsePolicy(document: unknown): Policy {
  return parse(document, '');
}

/**
 * Checks a list of policy documents.
 *
 * @throws InvalidPolicyError as {@link parsePolicy}, and where two of them have the same name.
 */
export function parsePolicies(documents: unknown): readonly Policy[] {
  if (!Array.isArray(documents)) {
    throw new InvalidPolicyError(`Expected \`policies\` to be an array of policies, got ${show(documents)}.`);
  }
  const policies = documents.map((document, index) => parse(document, ` (policies[${index}])`));
  const names = new Set<string>();
  for (const { name } of policies) {
    if (names.has(name)) throw new InvalidPolicyError(`Expected each policy once, got "${name}" twice.`);
    names.add(name);
  }
  return Object.freeze(policies);
}

/** @param place where the document stands, for messages about one without a usable name. */
function parse(document: unknown, place: string): Policy {
  const unnamed = Fields.read(document, '', place);
  const name = readName(unnamed);
  const fields = unnamed.named(` (policy "${name}")`).only(POLICY_FIELDS);

  const version = fields.number('version', 'a whole number from 0 to 2^53 − 1', isWholeFrom(0)) ?? 0;
  const local = readTier(fields, 'local', RUNS.local);
  const ceiling = readTier(fields, 'ceiling', RUNS.ceiling);
  const concurrency = readConcurrency(fields);
  if (!local && !ceiling && !concurrency) {
    throw fields.wrongTogether('at least one of `local`, `ceiling`, `concurrency`', 'none');
  }
  const mode = fields.choice('mode', MODES);
  const inheritance = fields.choice('inheritance', INHERITANCES);
  const storeLoss = fields.choice('storeLoss', STORE_LOSSES);
  const lease = readLease(fields);
  const outage = readOutage(fields);
  const tiers: Tiers = { local, ceiling, concurrency, mode: mode ?? 'enforce' };
  const overrides = readOverrides(fields, name, tiers);

  return Object.freeze({
    name,
    version,
    terms: termsOf(tiers, name),
    overrides: new FrozenMap(overrides?.map(({ key, terms }) => [key, terms]) ?? []),
    lease: lease.settings,
    outage: outage.settings,
    inheritance: inheritance ?? 'as-is',
    storeLoss: storeLoss ?? 'quick',
    document: Object.freeze({
      name,
      version,
      ...(local && { local: local.document }),
      ...(ceiling && { ceiling: ceiling.document }),
      ...(concurrency && { concurrency: concurrency.document }),
      ...(lease.document && { lease: lease.document }),
      ...(outage.document && { outage: outage.document }),
      ...(mode && { mode }),
      ...(inheritance && { inheritance }),
      ...(storeLoss && { storeLoss }),
      // fromEntries defines properties and never assigns them: a key "__proto__" stays a key.
      ...(overrides && {
        overrides: Object.freeze(Object.fromEntries(overrides.map(({ key, document }) => [key, document]))),
      }),
    }),
  });
}

function readName(fields: Fields): string {
  const name = fields.get('name');
  if (typeof name !== 'string' || name.length > POLICY_LIMITS.nameLength || !NAME.test(name)) {
    throw fields.wrong('name', NAME_RULE);
  }
  return name;
}

interface Tiers {
  readonly local: Tier | undefined;
  readonly ceiling: Tier | undefined;
  readonly concurrency: Concurrency | undefined;
  readonly mode: PolicyMode;
}

function termsOf({ local, ceiling, concurrency, mode }: Tiers, fence: string): Terms {
  const terms = { local: local?.local, ceiling: ceiling?.ceiling, concurrency: concurrency?.terms };
  return Object.freeze({ ...terms, mode, fence });
}

interface Override {
  readonly key: string;
  readonly terms: Terms;
  readonly document: OverrideDocument;
}

function readOverrides(policy: Fields, policyName: string, defaults: Tiers): readonly Override[] | undefined {
  const fields = policy.nested('overrides');
  return fields && Array.from(fields.names(), (key) => readOverride(fields, key, policyName, defaults));
}

function readOverride(overrides: Fields, key: string, policyName: string, defaults: Tiers): Override {
  const bytes = new TextEncoder().encode(key).length;
  if (bytes < 1 || bytes > POLICY_LIMITS.keyBytes) {
    throw overrides.wrongTogether('keys of 1 to 512 bytes', `one of ${bytes}`);
  }
  const fields = overrides.entry(key).only(OVERRIDE_FIELDS);
  const local = readTier(fields, 'local', RUNS.local);
  const ceiling = readTier(fields, 'ceiling', RUNS.ceiling);
  const mode = fields.choice('mode', MODES);
  const concurrency = readConcurrency(fields);
  if (!local && !ceiling && !concurrency && !mode) {
    throw fields.wrongTogether('at least one of `local`, `ceiling`, `concurrency`, `mode`', 'none');
  }
  return {
    key,
    terms: termsOf(
      {
        local: local ?? defaults.local,
        ceiling: ceiling ?? defaults.ceiling,
        concurrency: concurrency ?? defaults.concurrency,
        mode: mode ?? defaults.mode,
      },
      `${policyName}#${key}`,
    ),
    document: Object.freeze({
      ...(local && { local: local.document }),
      ...(ceiling && { ceiling: ceiling.document }),
      ...(concurrency && { concurrency: concurrency.document }),
      ...(mode && { mode }),
    }),
  };
}

function readLease(policy: Fields) {
  const fields = policy.nested('lease')?.only(['durationMs']);
  const { least, most } = POLICY_LIMITS.leaseDurationMs;
  const durationMs = fields?.number('durationMs', 'a whole number of ms from 50 to 600000', isWholeFrom(least, most));
  return {
    settings: Object.freeze({ durationMs: durationMs ?? POLICY_LIMITS.leaseDurationMs.default }),
    document: fields && Object.freeze({ ...(durationMs !== undefined && { durationMs }) }),
  };
}

function readOutage(policy: Fields) {
  const fields = policy.nested('outage')?.only(['mode', 'fleet']);
  const mode = fields?.choice('mode', OUTAGE_MODES);
  const fleet = fields?.number('fleet', 'a positive whole number', isWholeFrom(1));
  return {
    settings: Object.freeze({ mode: mode ?? ('deny' as const), fleet }),
    document: fields && Object.freeze({ ...(mode && { mode }), ...(fleet !== undefined && { fleet }) }),
  };
}

function isWholeFrom(least: number, most = Number.MAX_SAFE_INTEGER): (value: number) => boolean {
  return (value) => Number.isSafeInteger(value) && value >= least && value <= most;
}
