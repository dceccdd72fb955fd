import { type Mutation, UNREFUSED } from './mutation.js';

const KEEPER = 'lease/keeper.ts';

/** The holder's half. */
export const holderMutations: readonly Mutation[] = [
  {
    rule: '2',
    without: 'one counter that never restarts',
    edits: [
      {
        file: KEEPER,
        find: 'composeCall(account, this.#parts, this.#seq + 1, now,',
        replace: 'composeCall(account, this.#parts, (account.era === "" ? (this.#seq = 0) : this.#seq) + 1, now,',
      },
    ],
    caughtBy: 'seq is one counter a limiter',
    foundBy: 'pure',
  },
  {
    rule: '2',
    without: 'one call in flight',
    edits: [
      { file: KEEPER, find: 'if (account.flight || account.blockedFor(cost, now)) return false;', replace: '' },
      {
        file: 'lease/tick.ts',
        find: 'if (account.queued || account.flight) return;',
        replace: 'if (account.queued) return;',
      },
      { file: KEEPER, find: '    if (account.flight) return undefined;\n', replace: '' },
    ],
    caughtBy: 'one call is in flight',
  },
  {
    rule: '3',
    without: 'an identity of its own for each limiter',
    edits: [
      {
        file: 'create-limiter.ts',
        find: 'holder: randomId(chanceOfIdentity(options)),',
        replace: "holder: options.instanceId ?? 'nobody',",
      },
    ],
    caughtBy: 'a limiter restarted under its instanceId',
    foundBy: 'pure',
  },
  {
    rule: '4',
    without: 'late replies ignored',
    edits: [
      {
        file: 'lease/courier.ts',
        find: 'if (account.flight !== flight || reply.seq !== flight.seq) return;',
        replace: '',
      },
      { file: KEEPER, find: '    if (account.flight !== flight) return;\n', replace: '' },
    ],
    caughtBy: 'a reply to a call that was given up',
    foundBy: 'pure',
  },
  {
    rule: '4',
    without: 'returned tokens staying out of the wallet',
    edits: [
      {
        file: KEEPER,
        find: '    account.failures += 1;\n',
        replace: '    account.failures += 1;\n    account.balance += flight.returned;\n',
      },
    ],
    caughtBy: 'what a lost call had returned',
    foundBy: 'pure',
  },
  {
    rule: '5',
    without: 'the lease looked at when a token is spent',
    edits: [
      {
        file: 'limiter/judge.ts',
        find: 'if (account.balance >= micro && now < account.endsAt) {',
        replace: 'if (account.balance >= micro) {',
      },
      {
        file: 'limiter/plain-path.ts',
        find: 'left < (cells[first + LOW_WATER] as number) || now >= (cells[first + ENDS_AT] as number)',
        replace: 'left < (cells[first + LOW_WATER] as number)',
      },
    ],
    caughtBy: 'the lease is looked at when a token is spent',
    foundBy: 'pure',
  },
  {
    rule: '5',
    without: 'the lease counted from before the call was sent',
    edits: [
      {
        file: 'lease/grant.ts',
        find: 'leaseEnd(flight.sentAt, leaseMs)',
        replace: 'leaseEnd(now, leaseMs)',
      },
    ],
    caughtBy: 'the lease is counted from before the call was sent',
  },
  {
    rule: '5',
    without: '1 % for a clock that runs slow',
    given: [
      {
        file: 'ceiling/ceiling-store.ts',
        find: 'return Math.ceil(lease / 100) + MAX_SKEW_US;',
        replace: 'return 0;',
      },
    ],
    edits: [{ file: 'lease/wallet.ts', find: 'sentAt + durationMs * 0.99', replace: 'sentAt + durationMs' }],
    caughtBy: 'a clock that runs 1 % slow',
  },
  {
    rule: '6',
    without: 'dead tokens dropped at a deposit',
    given: [UNREFUSED],
    edits: [{ file: 'lease/wallet.ts', find: 'let dropped = expire(wallet, now);', replace: 'let dropped = 0;' }],
    caughtBy: 'a deposit drops tokens',
  },
  {
    rule: 'era',
    without: 'the other wallets of the partition told of a new era',
    edits: [{ file: KEEPER, find: '    if (first) return;\n', replace: '    return;\n' }],
    caughtBy: 'and its other wallets of that partition',
  },
  {
    rule: 'suspend',
    without: 'leases dropped after a suspension',
    edits: [{ file: KEEPER, find: 'if (!this.#suspend.noticed()) return;', replace: 'if (this.#suspend) return;' }],
    caughtBy: 'what a machine held when it was suspended',
  },
  {
    rule: 'suspend',
    without: 'replies of before it being void',
    edits: [
      {
        file: KEEPER,
        find: '    this.#noticeSuspend(now);\n    if (account.flight !== flight) return;\n',
        replace: '',
      },
    ],
    caughtBy: 'and a reply that waited out the suspension',
  },
  {
    rule: 'share',
    without: 'a share that starts empty',
    edits: [
      {
        file: 'lease/share-bucket.ts',
        find: 'return { tokens: 0, at: startsAt };',
        replace: 'return { tokens: 1e9, at: startsAt };',
      },
    ],
    caughtBy: 'starts empty, however often',
  },
  {
    rule: 'share',
    without: 'a share that begins when the last lease ends',
    edits: [
      {
        file: 'limiter/judge.ts',
        find: 'newShareBucket(Math.max(account.endsAt, this.#keeper.unreachableSince(now)))',
        replace: 'newShareBucket(this.#keeper.unreachableSince(now))',
      },
    ],
    caughtBy: 'begins when the last lease ends',
  },
  {
    rule: 'share',
    without: 'the debt kept by an answer that did not pay it',
    edits: [{ file: 'lease/grant.ts', find: 'if (account.outageSince === flight.since) ', replace: '' }],
    caughtBy: 'an outage that began while a call was under way',
  },
  {
    rule: 'outage',
    without: 'a pause after a probe that could not be sent',
    edits: [{ file: KEEPER, find: 'if (this.#breaker.admits(now)) this.#breaker.sent(now);', replace: '' }],
    caughtBy: 'whoever waits while the store is not connected',
  },
];
