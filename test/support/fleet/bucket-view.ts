import { type LeaseCall, partitionOf } from '../../../src/ceiling/ceiling-store.js';
import type { Partition } from '../../../src/ceiling/ledger.js';
import { parsePolicy } from '../../../src/policy/parse-policy.js';
import type { CeilingTerms, PolicyDocument } from '../../../src/policy/policy.js';
import { MICROS_PER_MS } from '../../../src/units.js';

/** The policy, the key and the bucket that the fleets of these tests are about. */
export const POLICY = 'p';
export const KEY = 'k';
export const BUCKET = `${POLICY}:${KEY}`;
/** Another key whose bucket lies in the same partition, and so behind the same fence. */
export const OTHER_KEY = neighbourOf(KEY);

export interface VersionedTerms extends CeilingTerms {
  readonly version: number;
}

/** The ceiling's terms in `document`, with their version. */
export function termsOf(document: PolicyDocument): VersionedTerms {
  const { version, terms } = parsePolicy(document);
  if (!terms.ceiling) throw new Error('Expected a policy with a ceiling.');
  return { version, ...terms.ceiling };
}

/** A call that reports nothing and asks for nothing, under `terms`. */
export function probe(terms: VersionedTerms, document?: PolicyDocument): LeaseCall {
  return {
    policy: POLICY,
    key: KEY,
    fence: POLICY,
    ...terms,
    inheritance: document?.inheritance ?? 'as-is',
    guard: 0,
    holder: 'probe----',
    seq: 1,
    disown: 0,
    unspent: 0,
    returned: 0,
    refund: 0,
    refundSince: 0,
    need: 0,
    head: 0,
    want: 0,
    demand: 0,
    weight: 1,
    lease: 50 * MICROS_PER_MS,
    sentAt: 0,
    since: 0,
    witness: 0,
    incarnation: 0,
    certainUntil: 0,
  };
}

/** A copy of a partition's header and of the one bucket, to try out on what the next call would find. */
export function copyOf({ era, bornAt, fences, buckets }: Partition): Partition {
  const bucket = buckets.get(BUCKET);
  const copy: Partition = { era, bornAt, fences: new Map(), buckets: new Map() };
  for (const [name, fence] of fences) copy.fences.set(name, { ...fence, untouched: { ...fence.untouched } });
  if (bucket) {
    copy.buckets.set(BUCKET, {
      ...bucket,
      level: { ...bucket.level },
      window: { ...bucket.window, times: [...bucket.window.times], amounts: [...bucket.window.amounts] },
      holders: new Map([...bucket.holders].map(([id, holder]) => [id, { ...holder }])),
      classes: new Map([...bucket.classes].map(([index, sums]) => [index, { ...sums }])),
    });
  }
  return copy;
}

function neighbourOf(key: string): string {
  for (let i = 0; ; i++) {
    const other = `n${i}`;
    if (partitionOf(POLICY, other) === partitionOf(POLICY, key)) return other;
  }
}
