import { type Mutation, UNREFUSED } from './mutation.js';

const LEDGER = 'ceiling/ledger.ts';
const TOKEN_BUCKET = 'ceiling/refill/token-bucket.ts';
const FENCE = 'ceiling/fence.ts';

/** The store's half. */
export const ledgerMutations: readonly Mutation[] = [
  {
    rule: '1',
    without: 'T capped by B − O at each refill',
    edits: [
      {
        file: TOKEN_BUCKET,
        find: 'refillGuarded(bucket.level, now, bucket, bucket.outstanding, until);',
        replace: 'refillGuarded(bucket.level, now, bucket, 0, until);',
      },
      {
        file: TOKEN_BUCKET,
        find: 'capUnder(bucket.burst, bucket.outstanding, until, now)',
        replace: 'capUnder(bucket.burst, 0, until, now)',
      },
    ],
    caughtBy: 'tokens in a wallet keep their place',
    foundBy: 'pure',
  },
  {
    rule: '2',
    without: 'older calls answered stale',
    edits: [{ file: LEDGER, find: "if (call.seq < known.seq) return { ...head, status: 'stale' };", replace: '' }],
    caughtBy: 'a call that comes once more after a newer one',
    foundBy: 'pure',
  },
  {
    rule: '2',
    without: 'repeats answered from the record',
    edits: [
      { file: LEDGER, find: 'if (call.seq === known.seq) return grantReply(head, known, bucket, call);', replace: '' },
    ],
    caughtBy: 'a call that runs twice',
  },
  {
    rule: '4',
    without: 'an explicit disown: a caller that knows of no grant has taken none',
    edits: [
      {
        file: LEDGER,
        find: 'if (call.disown > 0 && holder.seq >= call.disown) {',
        replace: 'if (call.certainUntil === 0 || (call.disown > 0 && holder.seq >= call.disown)) {',
      },
    ],
    caughtBy: 'a key that was forgotten and is touched again',
  },
  {
    rule: '4',
    without: 'taking back only what was granted by a call that was given up',
    edits: [{ file: LEDGER, find: 'call.disown > 0 && holder.seq >= call.disown', replace: 'call.disown > 0' }],
    caughtBy: 'a lost call takes back no grant but its own',
    foundBy: 'pure',
  },
  {
    rule: '4',
    without: 'taking back at most what is outstanding',
    edits: [
      { file: LEDGER, find: 'Math.min(holder.lastGrant, holder.outstanding)', replace: 'holder.lastGrant' },
      {
        file: LEDGER,
        find: '      holder.outstanding = 0;\n      holder.lastGrant = 0;\n    }\n    const recordEnd',
        replace: '      holder.outstanding = 0;\n    }\n    const recordEnd',
      },
    ],
    caughtBy: 'no more is taken back than is outstanding',
    foundBy: 'pure',
  },
  {
    rule: '5',
    without: 'a grace at the store for what its clock may be off',
    edits: [
      {
        file: 'ceiling/ceiling-store.ts',
        find: 'return Math.ceil(lease / 100) + MAX_SKEW_US;',
        replace: 'return Math.ceil(lease / 100);',
      },
    ],
    caughtBy: 'the store ends a lease later than its holder',
  },
  {
    rule: '6',
    without: 'refusing what was sent under a lease that has ended since',
    edits: [UNREFUSED],
    caughtBy: 'and what was sent under a lease that the store has ended since',
  },
  {
    rule: '7',
    without: 'the age limit',
    edits: [{ file: LEDGER, find: 'now - call.sentAt > MAX_AGE_US || ', replace: '' }],
    caughtBy: 'a late duplicate does not make up a holder',
  },
  {
    rule: '7',
    without: 'the limit on what comes from the future',
    edits: [{ file: LEDGER, find: ' || call.sentAt - now > MAX_SKEW_US', replace: '' }],
    caughtBy: 'nor one that looks as if it came from the future',
  },
  {
    rule: '7',
    without: 'ignoring what a holder returns that is made by this call',
    edits: [
      {
        file: LEDGER,
        find: '    holder = newHolder(call, now);\n',
        replace: '    holder = newHolder(call, now);\n    level.tokens += call.returned;\n',
      },
    ],
    caughtBy: 'making a holder ignores what it returns',
  },
  {
    rule: '7',
    without: 'ignoring what a holder takes back that is made by this call',
    edits: [
      {
        file: LEDGER,
        find: '    holder = newHolder(call, now);\n',
        replace: '    holder = newHolder(call, now);\n    level.tokens += call.refund;\n',
      },
    ],
    caughtBy: 'nor what it takes back',
  },
  {
    rule: '7',
    without: 'records that outlive their lease',
    edits: [
      {
        file: LEDGER,
        find: 'const recordEnd = Math.max(holder.leaseEnd + MAX_AGE_US, holder.memberUntil);\n    if (',
        replace: 'const recordEnd = holder.leaseEnd;\n    if (',
      },
    ],
    caughtBy: 'a record outlives its lease',
  },
  {
    rule: '8',
    without: 'refill before lease ends',
    edits: [
      {
        file: LEDGER,
        find: '  rule.refill(bucket, call, moment);\n  sweep(bucket, now);\n',
        replace: '  sweep(bucket, now);\n  rule.refill(bucket, call, moment);\n',
      },
    ],
    caughtBy: 'refill comes first',
    foundBy: 'pure',
  },
  {
    rule: '9',
    without: 'a fence that outlives the bucket',
    edits: [
      {
        file: LEDGER,
        find: 'let fence = partition.fences.get(call.fence);',
        replace:
          'let fence = (partition.buckets.get(bucketName(call))?.expiresAt ?? 0) > now ? partition.fences.get(call.fence) : undefined;',
      },
    ],
    caughtBy: 'the fence outlives the bucket',
  },
  {
    rule: '10',
    without: 'early answers that change nothing',
    edits: [
      {
        file: LEDGER,
        find: '    // Answered without a change: a repeat',
        replace:
          '    advance(bucket, ruleOf(call), call, fence, partition, { now, bornAt: partition.bornAt, until: 0 });\n    // Answered without a change: a repeat',
      },
    ],
    caughtBy: 'a call answered from its record changes nothing',
  },
  {
    rule: '11',
    without: 'a key that outlives the leases in it',
    edits: [
      {
        file: TOKEN_BUCKET,
        find: 'bucket.lastEnd + refillTime(bucket.outstanding, bucket),',
        replace: '',
      },
      { file: LEDGER, find: '    bucket.lastEnd + MAX_AGE_US,\n', replace: '' },
    ],
    caughtBy: 'the key outlives every lease',
  },
  {
    rule: '12',
    without: 'the remainder carried',
    edits: [{ file: 'ceiling/exact.ts', find: 'level.remainder = gained.remainder;', replace: 'level.remainder = 0;' }],
    caughtBy: 'one token a day accrues',
  },
  {
    rule: 'lease end',
    without: 'counting a lease that ends as spent',
    edits: [
      {
        file: LEDGER,
        find: '        bucket.outstanding -= holder.outstanding;\n',
        replace:
          '        bucket.level.tokens += holder.outstanding;\n        bucket.outstanding -= holder.outstanding;\n',
      },
    ],
    caughtBy: 'a lease that ends is counted as spent',
    foundBy: 'pure',
  },
  {
    rule: 'clock',
    without: 'the elapsed clamp: a clock that went back takes `at` with it',
    edits: [{ file: 'ceiling/exact.ts', find: '    level.at = now;\n  }\n', replace: '  }\n  level.at = now;\n' }],
    caughtBy: 'a clock that steps back and forth',
  },
  {
    rule: 'clock',
    without: 'the allowance within which a step back counts for nothing',
    edits: [
      {
        file: LEDGER,
        find: 'if (bucket.level.at - now > MAX_SKEW_US) rebase(',
        replace: 'if (bucket.level.at > now) rebase(',
      },
    ],
    caughtBy: 'a clock that steps back and forth',
  },
  {
    rule: 'clock',
    without: 'lease ends clamped on re-base',
    edits: [{ file: LEDGER, find: 'holder.leaseEnd = Math.min(holder.leaseEnd, latest);', replace: '' }],
    caughtBy: 'an hour back freezes nothing',
  },
  {
    rule: 'terms',
    without: 'a higher version taking over',
    edits: [{ file: FENCE, find: 'if (call.version > fence.version) {', replace: 'if (call.version < 0) {' }],
    caughtBy: 'and so does a loosened one',
  },
  {
    rule: 'terms',
    without: 'a bucket keeping the terms of a newer version than its caller knows',
    edits: [
      {
        file: LEDGER,
        find: 'if (fence.version > bucket.version || (current && !same',
        replace: 'if (fence.version !== bucket.version || (current && !same',
      },
    ],
    caughtBy: 'an override that was taken back',
  },
  {
    rule: 'terms',
    without: 'a lower version changing nothing',
    edits: [{ file: FENCE, find: 'if (call.version < fence.version || sameTerms', replace: 'if (sameTerms' }],
    caughtBy: 'a tightened ceiling holds',
  },
  {
    rule: 'terms',
    without: 'a second reset refused',
    edits: [{ file: FENCE, find: 'fence.resetAt > 0 && now - fence.resetAt <', replace: 'fence.resetAt > 0 && 0 >' }],
    caughtBy: 'a reset hands out one full burst',
  },
  {
    rule: 'terms',
    without: 'what a change hands out reckoned from the burst before it',
    edits: [
      {
        file: 'ceiling/refill/token-bucket.ts',
        find: 'fence.burstBefore, fence.burst',
        replace: 'bucket.burst, fence.burst',
      },
    ],
    caughtBy: 'a key that has missed changes',
  },
  {
    rule: 'terms',
    without: 'the stricter of two terms under one version',
    edits: [{ file: FENCE, find: 'if (slower || smaller) {', replace: 'if (!slower && !smaller) {' }],
    caughtBy: 'of two terms given in code the stricter',
  },
];
