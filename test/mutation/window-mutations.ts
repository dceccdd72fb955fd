import type { Mutation } from './mutation.js';

const LEDGER = 'ceiling/ledger.ts';
const FIXED_WINDOW = 'ceiling/refill/fixed-window.ts';

/** What ceilings of windows add, at the store. */
export const windowMutations: readonly Mutation[] = [
  {
    rule: 'windows',
    without: 'leases that end with their window',
    edits: [
      {
        file: FIXED_WINDOW,
        find: 'if (lease + Math.ceil(lease / 100) <= left) return lease;',
        replace: 'if (left !== lease) return lease;',
      },
    ],
    caughtBy: 'what a fixed window has granted is spent in it',
  },
  {
    rule: 'windows',
    without: 'a repeat being answered with the lease of the first time',
    edits: [
      {
        file: LEDGER,
        find: 'leaseWithin(bucket, call.lease, holder.creditAt, holder.leaseEnd)',
        replace: 'leaseWithin(bucket, call.lease, head.now, bucket.window.end)',
      },
    ],
    caughtBy: 'a call that runs again in the next window',
  },
  {
    rule: 'windows',
    without: 'what is reported as spent being logged',
    edits: [{ file: LEDGER, find: 'if (spent > 0) bucket.spent += spent;', replace: '' }],
    caughtBy: 'what holders report as spent comes back',
  },
  {
    rule: 'windows',
    without: 'what a lease’s end counts as spent being logged',
    edits: [{ file: LEDGER, find: '        bucket.spent += holder.outstanding;\n', replace: '' }],
    caughtBy: 'and so does what the end of a lease',
  },
  {
    rule: 'windows',
    without: 'the count of the window before',
    edits: [
      {
        file: 'ceiling/refill/sliding-counter.ts',
        find: 'window.previous = moment.now < window.end + length ? window.current : 0;',
        replace: 'window.previous = 0;',
      },
    ],
    caughtBy: 'of what two counts had in the window before',
  },
];
