import type { Mutation } from './mutation.js';

const LEDGER = 'ceiling/ledger.ts';
const TOKEN_BUCKET = 'ceiling/refill/token-bucket.ts';
const FENCE = 'ceiling/fence.ts';

/** What section 6 adds, at the store. */
export const faultMutations: readonly Mutation[] = [
  {
    rule: 'era',
    without: 'buckets of a store without data starting empty',
    edits: [{ file: FENCE, find: 'tokens: full ? call.burst : 0,', replace: 'tokens: call.burst,' }],
    caughtBy: 'a store that has lost its data begins empty',
    foundBy: 'loss',
  },
  {
    rule: 'era',
    without: 'registering what a holder says it has',
    edits: [
      { file: LEDGER, find: '    bucket.outstanding += call.unspent;\n', replace: '' },
      { file: LEDGER, find: '    outstanding: call.unspent,\n', replace: '    outstanding: 0,\n' },
    ],
    caughtBy: 'holders register again',
  },
  {
    rule: 'strict',
    without: 'a part of the burst kept for wallets that the store has lost',
    edits: [
      {
        file: 'ceiling/guard.ts',
        find: 'return now < until ? Math.min(cap, Math.max(0, cap - heldReady(burst))) : cap;',
        replace: 'return cap;',
      },
    ],
    caughtBy: 'what wallets hold that the store has lost',
  },
  {
    rule: 'strict',
    without: 'holding no more ready than that part',
    edits: [
      {
        file: 'ceiling/allotment.ts',
        find: 'if (moment.until > 0 && !call.window)',
        replace: 'if (moment.until < 0 && !call.window)',
      },
    ],
    caughtBy: 'and never filled up with more',
  },
  {
    rule: 'strict',
    without: 'keeping untouched buckets low until the guard is over',
    edits: [
      {
        file: 'ceiling/guard.ts',
        find: 'if (level.at < until && now >= until)',
        replace: 'if (level.at < until && now < 0)',
      },
    ],
    caughtBy: 'what was kept low for a lease',
  },
  {
    rule: 'strict',
    without: 'the stricter winning under one version',
    edits: [
      {
        file: FENCE,
        find: 'call.version === fence.version && call.guard > fence.guard',
        replace: 'call.version < fence.version && call.guard > fence.guard',
      },
    ],
    caughtBy: 'who has not heard of it is held to it',
  },
  {
    rule: 'absence',
    without: 'the level of an untouched bucket kept through a change of terms',
    edits: [
      {
        file: FENCE,
        find: 'inherit(fence.untouched, now, fence.burstBefore, fence.burst, fence.inheritance, 0);',
        replace: 'fence.untouched.tokens = to.burst;',
      },
    ],
    caughtBy: 'a raised burst is earned, not found',
  },
  {
    rule: 'suspect',
    without: 'buckets of an older era being empty',
    edits: [
      {
        file: TOKEN_BUCKET,
        find: '    level.tokens = Math.min(level.tokens, 0);\n    level.remainder = 0;\n    level.at',
        replace: '    level.at',
      },
    ],
    caughtBy: 'a promoted replica has nothing left',
  },
  {
    rule: 'suspect',
    without: 'the time since the data was current going unpaid',
    edits: [{ file: TOKEN_BUCKET, find: 'level.at = Math.max(level.at, bornAt);', replace: '' }],
    caughtBy: 'nor does it pay for the time since',
    foundBy: 'failover',
  },
  {
    rule: 'suspect',
    without: 'untouched buckets being empty',
    edits: [{ file: LEDGER, find: 'Math.min(fence.untouched.tokens, 0)', replace: 'fence.untouched.tokens' }],
    caughtBy: 'nor has it keys that are full',
  },
  {
    rule: 'suspect',
    without: 'untouched buckets beginning anew',
    edits: [{ file: LEDGER, find: '    fence.untouched.at = now;\n', replace: '' }],
    caughtBy: 'nor has it keys that are full',
  },
  {
    rule: 'witness',
    without: 'charging a deleted key with what its holder took',
    edits: [{ file: LEDGER, find: 'if (call.witness > 0 && lost &&', replace: 'if (call.witness < 0 && lost &&' }],
    caughtBy: 'a key that was deleted is charged',
  },
  {
    rule: 'witness',
    without: 'its validity: only while the key was certain to exist',
    edits: [{ file: LEDGER, find: ' && call.certainUntil > bucket.incarnation;', replace: ';' }],
    caughtBy: 'a key that has expired is not',
  },
  {
    rule: 'witness',
    without: 'its era: what was lost with all data is accounted for',
    edits: [{ file: LEDGER, find: ' && call.incarnation >= partition.bornAt', replace: '' }],
    caughtBy: 'what was taken before the loss is not charged',
  },
  {
    rule: 'witness',
    without: 'the floor at −B',
    edits: [
      {
        file: LEDGER,
        find: 'Math.max(-bucket.burst, level.tokens - call.witness)',
        replace: 'level.tokens - call.witness',
      },
    ],
    caughtBy: 'and never pushes the bucket below minus one burst',
  },
  {
    rule: 'share',
    without: 'the first to come back paying for the fleet',
    edits: [{ file: LEDGER, find: '  if (call.since <= 0) return;\n', replace: '  if (call.since >= 0) return;\n' }],
    caughtBy: 'the first to come back pays',
  },
  {
    rule: 'share',
    without: 'each moment being paid for once',
    edits: [{ file: LEDGER, find: 'Math.max(call.since, bucket.paidUntil);', replace: 'call.since;' }],
    caughtBy: 'each moment is paid for once',
  },
  {
    rule: 'share',
    without: 'the payment ending at zero',
    edits: [
      {
        file: LEDGER,
        find: 'Math.max(Math.min(bucket.level.tokens, 0), bucket.level.tokens - spent)',
        replace: 'bucket.level.tokens - spent',
      },
    ],
    caughtBy: 'and the bucket is not pushed below zero',
  },
];
