import { InvalidPolicyError, show } from '../errors.js';
import { Fields } from './fields.js';
import { readOverrides } from './overrides.js';
import type { Inheritance, OutageMode, Policy, StoreLoss } from './policy.js';
import { documentOf, readTiers, TIER_FIELDS, termsOf } from './tiers.js';

/** Sizes and times that a policy is held to. */
const POLICY_LIMITS = {
  nameLength: 64,
  leaseDurationMs: { default: 2_000, least: 50, most: 600_000 },
} as const;

const POLICY_FIELDS = [
  'name',
  'version',
  ...TIER_FIELDS,
  'lease',
  'outage',
  'inheritance',
  'storeLoss',
  'allow',
  'deny',
  'overrides',
] as const;
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
  const tiers = readTiers(fields);
  const { local, ceiling, concurrency } = tiers;
  if (!local && !ceiling && !concurrency) {
    throw fields.wrongTogether('at least one of `local`, `ceiling`, `concurrency`', 'none');
  }
  const inheritance = fields.choice('inheritance', INHERITANCES);
  const storeLoss = fields.choice('storeLoss', STORE_LOSSES);
  const lease = readLease(fields);
  const outage = readOutage(fields);
  const overrides = readOverrides(fields, name, tiers);

  return Object.freeze({
    name,
    version,
    terms: termsOf(tiers, name),
    overrides: overrides.exact,
    patterns: overrides.patterns,
    lease: lease.settings,
    outage: outage.settings,
    inheritance: inheritance ?? 'as-is',
    storeLoss: storeLoss ?? 'quick',
    document: Object.freeze({
      name,
      version,
      ...documentOf(tiers),
      ...(lease.document && { lease: lease.document }),
      ...(outage.document && { outage: outage.document }),
      ...(inheritance && { inheritance }),
      ...(storeLoss && { storeLoss }),
      ...overrides.document,
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
