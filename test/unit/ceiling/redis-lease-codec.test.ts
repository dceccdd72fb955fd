import { describe, expect, it } from 'vitest';
import { decodeLeaseReplies, LeaseArguments } from '../../../src/ceiling/redis-lease-codec.js';
import { CeilingError } from '../../../src/errors.js';
import { leaseCall } from '../../contract/ceiling-store.js';

/** What the script would answer: `now`, and of each call 15 numbers and an era. */
function answer(now: number, ...replies: { numbers: readonly number[]; era: string }[]): Buffer {
  const doubles = (numbers: readonly number[]) => Buffer.from(new Float64Array(numbers).buffer);
  const each = replies.map(({ numbers, era }) => [
    doubles(numbers),
    Buffer.from([era.length]),
    Buffer.from(era, 'latin1'),
  ]);
  return Buffer.concat([doubles([now]), ...each.flat()]);
}

const GRANTED = [0, 7, 1, 10, 2, 3, 4, 5, 6, 8, 9, 2, 11, 12, 13];
const REFUSED = [2, 8, 1, 10, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const head = { now: 1_000, version: 1, burst: 10, rateNum: 2, rateDen: 3 };

describe('the answer of the lease script', () => {
  it('is read as one reply a call, in their order', () => {
    const bytes = answer(1_000, { numbers: GRANTED, era: 'one' }, { numbers: REFUSED, era: 'another' });
    expect(decodeLeaseReplies(bytes, 2)).toEqual([
      {
        ...{ ...head, seq: 7, era: 'one', status: 'granted', granted: 4, level: 5, horizon: 6, next: 8, retry: 9 },
        ...{ giveBack: false, conflict: true, incarnation: 11, certainUntil: 12, lease: 13 },
      },
      { ...head, seq: 8, era: 'another', status: 'refused' },
    ]);
  });

  it('has the largest whole numbers as they are', () => {
    const numbers = GRANTED.with(6, Number.MAX_SAFE_INTEGER).with(13, Number.MAX_SAFE_INTEGER - 1);
    expect(decodeLeaseReplies(answer(1_000, { numbers, era: 'e' }), 1)).toMatchObject([
      { granted: Number.MAX_SAFE_INTEGER, certainUntil: Number.MAX_SAFE_INTEGER - 1 },
    ]);
  });

  const good = { numbers: GRANTED, era: 'era' };
  it.each<[what: string, given: unknown]>([
    ['no bytes', [1, 2]],
    ['nothing', null],
    ['not even a time', Buffer.alloc(7)],
    ['one reply of two', answer(1_000, good)],
    ['three replies of two', answer(1_000, good, good, good)],
    ['a byte too few', answer(1_000, good, good).subarray(0, -1)],
    ['a byte too many', Buffer.concat([answer(1_000, good, good), Buffer.alloc(1)])],
    ['an unknown status', answer(1_000, good, { numbers: GRANTED.with(0, 3), era: 'era' })],
    ['a fraction', answer(1_000, good, { numbers: GRANTED.with(6, 0.5), era: 'era' })],
    ['a negative number', answer(1_000, good, { numbers: GRANTED.with(6, -1), era: 'era' })],
    ['no number', answer(1_000, good, { numbers: GRANTED.with(6, Number.NaN), era: 'era' })],
    ['one past 2^53', answer(1_000, good, { numbers: GRANTED.with(6, 2 ** 53), era: 'era' })],
    ['no time', answer(Number.NaN, good, good)],
  ])('is an error where it is %s', (_, given) => {
    expect(() => decodeLeaseReplies(given, 2)).toThrow(CeilingError);
  });
});

describe('the arguments of the lease script', () => {
  it('name each fence and each holder once', () => {
    const calls = new LeaseArguments(3);
    calls.add(leaseCall({ fence: 'api', holder: 'holder-one' }));
    calls.add(leaseCall({ fence: 'api#key', holder: 'holder-one' }));
    calls.add(leaseCall({ fence: 'api', holder: 'holder-two' }));
    expect(calls.list.slice(1)).toEqual(['api', 'holder-one', 'api#key', 'holder-two']);
  });

  it('have nothing of what is no lease call', () => {
    const [calls, others] = [new LeaseArguments(2), new LeaseArguments(2)];
    const good = leaseCall({ fence: 'api', holder: 'holder-one' });
    expect(() => calls.add({ ...good, certainUntil: -1 })).toThrow('`certainUntil`');
    calls.add(good);
    others.add(good);
    expect(calls.list).toEqual(others.list);
  });
});
