import type { Fields } from './fields.js';
import { FrozenMap } from './frozen-map.js';
import { readPattern } from './pattern.js';
import type { OverrideDocument, PatternTerms, PolicyDocument, PolicyMode, Terms } from './policy.js';
import { documentOf, readTiers, TIER_FIELDS, type Tiers, termsOf } from './tiers.js';

const KEY_BYTES = 512;
/** All of them may be looked at for a key that is new. */
const MOST_PATTERNS = 1_000;

/** The keys of a policy that have terms of their own. */
export interface Overrides {
  readonly exact: ReadonlyMap<string, Terms>;
  /** The most exact one first. */
  readonly patterns: readonly PatternTerms[];
  readonly document: Pick<PolicyDocument, 'allow' | 'deny' | 'overrides'>;
}

/** One of `overrides`, `allow` or `deny`. */
interface Entry {
  readonly text: string;
  readonly terms: Terms;
}

/** @throws InvalidPolicyError, also where a key is named twice */
export function readOverrides(policy: Fields, policyName: string, defaults: Tiers): Overrides {
  const listed = (name: 'allow' | 'deny', mode: PolicyMode): Entry[] | undefined =>
    policy.texts(name)?.map((text) => {
      checkKey(policy, text);
      return { text, terms: termsOf({ ...defaults, mode }, `${policyName}#${text}`) };
    });
  const deny = listed('deny', 'deny');
  const allow = listed('allow', 'allow');
  const fields = policy.nested('overrides');
  const given = fields && Array.from(fields.names(), (key) => readOverride(fields, key, policyName, defaults));

  const exact = new Map<string, Terms>();
  const patterns = new Map<string, PatternTerms>();
  for (const { text, terms } of [...(deny ?? []), ...(allow ?? []), ...(given ?? [])]) {
    const pattern = readPattern(text);
    const [key = ''] = pattern;
    const single = pattern.length === 1;
    if (single ? exact.has(key) : patterns.has(text)) {
      throw policy.wrongTogether('each key once in `allow`, `deny` and `overrides`', `${JSON.stringify(text)} twice`);
    }
    if (single) exact.set(key, terms);
    else patterns.set(text, Object.freeze({ pattern: Object.freeze(pattern), terms }));
  }
  if (patterns.size > MOST_PATTERNS) {
    throw policy.wrongTogether(`at most ${MOST_PATTERNS} keys with a star`, String(patterns.size));
  }
  return {
    exact: new FrozenMap(exact),
    // Of equally long ones the first stays first: what denies before what allows, and both before other terms.
    patterns: Object.freeze([...patterns.values()].sort((a, b) => literalLength(b) - literalLength(a))),
    document: {
      ...(allow && { allow: textsOf(allow) }),
      ...(deny && { deny: textsOf(deny) }),
      // fromEntries defines properties and never assigns them: a key "__proto__" stays a key.
      ...(given && {
        overrides: Object.freeze(Object.fromEntries(given.map(({ text, document }) => [text, document]))),
      }),
    },
  };
}

function readOverride(
  overrides: Fields,
  text: string,
  policyName: string,
  defaults: Tiers,
): Entry & { readonly document: OverrideDocument } {
  checkKey(overrides, text);
  const fields = overrides.entry(text).only(TIER_FIELDS);
  const { local, ceiling, concurrency, mode } = readTiers(fields);
  if (!local && !ceiling && !concurrency && !mode) {
    throw fields.wrongTogether('at least one of `local`, `ceiling`, `concurrency`, `mode`', 'none');
  }
  const tiers = {
    local: local ?? defaults.local,
    ceiling: ceiling ?? defaults.ceiling,
    concurrency: concurrency ?? defaults.concurrency,
    mode: mode ?? defaults.mode,
  };
  return {
    text,
    terms: termsOf(tiers, `${policyName}#${text}`),
    document: Object.freeze(documentOf({ local, ceiling, concurrency, mode })),
  };
}

function checkKey(fields: Fields, text: string): void {
  const bytes = new TextEncoder().encode(text).length;
  if (bytes < 1 || bytes > KEY_BYTES) throw fields.wrongTogether('keys of 1 to 512 bytes', `one of ${bytes}`);
}

/** How much of a pattern is literal: the longer, the more exactly it says which keys are meant. */
function literalLength({ pattern }: PatternTerms): number {
  return pattern.join('').length;
}

function textsOf(entries: readonly Entry[]): string[] {
  return Object.freeze(entries.map(({ text }) => text)) as string[];
}
