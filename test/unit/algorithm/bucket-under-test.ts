import { fullBucket, levelAt, take, waitFor } from '../../../src/algorithm/token-bucket.js';
import type { LeaseCall } from '../../../src/ceiling/ceiling-store.js';
import { execute, newPartition } from '../../../src/ceiling/ledger.js';
import { parsePolicy } from '../../../src/policy/parse-policy.js';
import type { RateDocument } from '../../../src/policy/policy.js';
import { MICRO, MICROS_PER_MS, type Milliseconds, type Tokens } from '../../../src/units.js';

/** One token bucket, whichever tier it is of: full at time 0, asked at times that the test names. */
export interface BucketUnderTest {
  /** Takes `cost` if it is there. */
  take(cost: Tokens, atMs: Milliseconds): boolean;
  /** How long until `cost` is there, as a caller would be told; 0: it is. */
  retryAfter(cost: Tokens, atMs: Milliseconds): Milliseconds;
}

export type Tier = 'local' | 'ceiling';
export const TIERS: readonly Tier[] = ['local', 'ceiling'];

export function bucket(tier: Tier, document: RateDocument): BucketUnderTest {
  return tier === 'local' ? localBucket(document) : ceilingBucket(document);
}

function localBucket(document: RateDocument): BucketUnderTest {
  const terms = parsePolicy({ name: 'p', local: document }).terms.local;
  if (!terms) throw new Error('Expected local terms.');
  const state = fullBucket(terms, 0);
  return {
    take(cost, at) {
      const level = levelAt(state, terms, at);
      if (level < cost) return false;
      take(state, level, cost, at);
      return true;
    },
    retryAfter: (cost, at) => waitFor(state, terms, cost, at),
  };
}

/** The ledger's bucket, in the hands of one holder that spends at once what it is granted, and asks for nothing more. */
function ceilingBucket(document: RateDocument): BucketUnderTest {
  const EPOCH = 1_700_000_000_000_000;
  const { terms } = parsePolicy({ name: 'p', ceiling: document });
  if (!terms.ceiling) throw new Error('Expected terms of a ceiling.');
  const ceiling = terms.ceiling;
  const partition = newPartition({ now: EPOCH, newEra: 'era', newStore: 'full' });
  let seq = 0;
  const ask = (cost: Tokens, at: Milliseconds) => {
    const micro = Math.round(cost * MICRO);
    seq += 1;
    const call: LeaseCall = {
      ...{ policy: 'p', key: 'k', fence: 'p', version: 0, inheritance: 'as-is', holder: 'only', seq },
      ...{ disown: 0, unspent: 0, returned: 0, refund: 0, refundSince: 0 },
      ...{ need: micro, head: micro, want: 0, demand: 0, weight: 1 },
      ...{ lease: 50_000, guard: 0, sentAt: 0, since: 0, witness: 0, incarnation: 0, certainUntil: 0 },
      ...ceiling,
    };
    const now = EPOCH + Math.floor(at * MICROS_PER_MS);
    const reply = execute(partition, call, { now, newEra: 'era', newStore: 'full' });
    if (reply.status !== 'granted') throw new Error(`Expected a grant or none, got ${reply.status}.`);
    return { allowed: reply.granted >= micro, retryMs: reply.retry / MICROS_PER_MS };
  };
  return {
    take(cost, at) {
      const { allowed } = ask(cost, at);
      // A spent token keeps its place in the burst until the store hears of it, so it hears of it at once.
      if (allowed) ask(0, at);
      return allowed;
    },
    retryAfter: (cost, at) => ask(cost, at).retryMs,
  };
}
