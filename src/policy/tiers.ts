import { type Concurrency, readConcurrency } from './concurrency.js';
import type { Fields } from './fields.js';
import type { OverrideDocument, PolicyMode, Terms } from './policy.js';
import { readTier, type Tier } from './tier.js';

const MODES: readonly PolicyMode[] = ['enforce', 'shadow', 'allow', 'deny'];

/** The fields that say how keys are treated: of a policy, and of each of its overrides. */
export const TIER_FIELDS = ['local', 'ceiling', 'concurrency', 'mode'] as const;

/** What these fields say, as far as they are there. */
export interface Tiers {
  readonly local: Tier | undefined;
  readonly ceiling: Tier | undefined;
  readonly concurrency: Concurrency | undefined;
  readonly mode: PolicyMode | undefined;
}

/** @throws InvalidPolicyError */
export function readTiers(fields: Fields): Tiers {
  return {
    local: readTier(fields, 'local'),
    ceiling: readTier(fields, 'ceiling'),
    concurrency: readConcurrency(fields),
    mode: fields.choice('mode', MODES),
  };
}

export function termsOf({ local, ceiling, concurrency, mode }: Tiers, fence: string): Terms {
  const terms = { local: local?.local, ceiling: ceiling?.ceiling, concurrency: concurrency?.terms };
  return Object.freeze({ ...terms, mode: mode ?? 'enforce', fence });
}

export function documentOf({ local, ceiling, concurrency, mode }: Tiers): OverrideDocument {
  return {
    ...(local && { local: local.document }),
    ...(ceiling && { ceiling: ceiling.document }),
    ...(concurrency && { concurrency: concurrency.document }),
    ...(mode && { mode }),
  };
}
