import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { demandClass, fairLevel, joinMembers, leaveMembers } from '../../../src/ceiling/allotment.js';
import type { Bucket, DemandClass, Holder } from '../../../src/ceiling/bucket.js';
import type { LeaseCall } from '../../../src/ceiling/ceiling-store.js';
import { MemoryCeiling } from '../../../src/ceiling/memory-ceiling.js';
import { maxMinLevel } from '../../../src/simulation/index.js';

const demand = fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: 2 ** 40 }));
/** Less than a micro-token a second a unit of weight is no demand: all of that is in one class. */
const member = fc
  .record({ perWeight: demand, weight: fc.integer({ min: 1, max: 1_000 }) })
  .map(({ perWeight, weight }) => ({ demand: perWeight * weight, weight }));
const members = fc.array(member, { minLength: 1, maxLength: 40 });

function bucketOf(list: readonly { demand: number; weight: number }[]): Bucket {
  const bucket = { classes: new Map<number, DemandClass>(), members: 0 } as unknown as Bucket;
  for (const holder of list) joinMembers(bucket, holder as Holder);
  return bucket;
}

describe('the fair level', () => {
  it('is that of the plain computation by sorting, but for the class it falls into', () => {
    fc.assert(
      fc.property(members, fc.double({ min: 0.05, max: 0.99, noNaN: true }), (list, part) => {
        const rate = part * list.reduce((sum, { demand }) => sum + demand, 0);
        const { level } = fairLevel(bucketOf(list), rate);
        const exact = maxMinLevel(list, rate);
        // Members of one class differ by less than the fourth root of two.
        expect(level / exact).toBeGreaterThan(2 ** -0.25 - 1e-9);
        expect(level / exact).toBeLessThan(2 ** 0.25 + 1e-9);
      }),
    );
  });

  it('is exact where each member has a class of its own', () => {
    const list = Array.from({ length: 12 }, (_, i) => ({ demand: 1_000 * 2 ** i, weight: 1 }));
    for (const rate of [20_000, 100_000, 1_000_000, 4_000_000]) {
      const { level, hungry } = fairLevel(bucketOf(list), rate);
      expect(level).toBeCloseTo(maxMinLevel(list, rate), 6);
      expect(hungry).toBe(list.filter(({ demand }) => demand > level).length);
    }
  });

  it('is none, and nobody is hungry, where all demands fit', () => {
    const list = [
      { demand: 10, weight: 1 },
      { demand: 20, weight: 2 },
    ];
    expect(fairLevel(bucketOf(list), 30)).toEqual({ level: 0, total: 3, hungry: 0, demand: 30 });
  });

  it('forgets members that leave without a trace', () => {
    fc.assert(
      fc.property(members, (list) => {
        const bucket = bucketOf(list);
        for (const holder of list) leaveMembers(bucket, holder as Holder);
        expect(bucket.members).toBe(0);
        expect(bucket.classes.size).toBe(0);
      }),
    );
  });

  it('puts demands in classes of four to the doubling', () => {
    for (let i = 0; i < 160; i++) expect(demandClass(2 ** (i / 4) * 1.0001)).toBe(i + 1);
    expect(demandClass(0)).toBe(0);
  });
});

describe('a grant', () => {
  const amount = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 3 }), fc.integer({ min: 4, max: 40_000_000 }));
  const step = fc.record({
    holder: fc.nat(4),
    elapse: fc.oneof(fc.nat(1_000), fc.nat(400_000)),
    need: amount,
    head: fc.double({ min: 0, max: 1, noNaN: true }),
    want: amount,
    demand: fc.oneof(fc.constant(0), fc.nat(2 ** 40)),
    weight: fc.integer({ min: 1, max: 1_000 }),
    keeps: fc.double({ min: 0, max: 1, noNaN: true }),
  });

  it('is a whole number between 0 and T, and T + O stays within the burst', () => {
    const terms = fc.constantFrom(
      [20_000_000, 1_000, 1],
      [1_000_000, 7, 3],
      [3_500_000, 1, 50_000],
      [40_000_000, 10_000, 1],
    );
    fc.assert(
      fc.property(terms, fc.array(step, { maxLength: 80 }), ([burst = 0, rateNum = 1, rateDen = 1], steps) => {
        let now = 1_700_000_000_000_000;
        const store = new MemoryCeiling({ clock: () => now });
        const held = new Map<string, number>();
        for (const [seq, { holder, elapse, need, head, want, demand, weight, keeps }] of steps.entries()) {
          now += elapse;
          const id = `holder-${holder}`;
          const unspent = Math.floor((held.get(id) ?? 0) * keeps);
          const asked = Math.min(need, burst);
          const call: LeaseCall = {
            policy: 'api',
            key: 'all',
            fence: 'api',
            version: 0,
            burst,
            rateNum,
            rateDen,
            inheritance: 'as-is',
            guard: 0,
            holder: id,
            seq: seq + 1,
            disown: 0,
            unspent,
            returned: 0,
            refund: 0,
            refundSince: 0,
            need: asked,
            head: Math.floor(asked * head),
            want: Math.min(want, burst),
            demand,
            weight,
            lease: 2_000_000,
            sentAt: now,
            since: 0,
            witness: 0,
            incarnation: 0,
            certainUntil: 0,
          };
          const before = now;
          const reply = store.leaseNow(call);
          const bucket = store.inspect('api', 'all')?.buckets.get('api:all');
          if (reply.status !== 'granted' || !bucket) throw new Error('Expected every call to be executed.');
          expect(Number.isInteger(reply.granted)).toBe(true);
          expect(reply.granted).toBeGreaterThanOrEqual(0);
          expect(reply.granted).toBeLessThanOrEqual(call.need + call.want);
          expect(bucket.level.tokens).toBeGreaterThanOrEqual(0);
          expect(bucket.level.tokens + bucket.outstanding).toBeLessThanOrEqual(burst);
          // Less than the first one lacks serves nobody.
          expect(reply.granted === 0 || reply.granted >= call.head).toBe(true);
          for (const span of [reply.next, reply.retry, reply.horizon]) expect(Number.isInteger(span)).toBe(true);
          held.set(id, unspent + reply.granted);
          expect(now).toBe(before);
        }
      }),
    );
  });
});
