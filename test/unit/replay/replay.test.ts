import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLimiter, type PolicyDocument, parsePolicy } from '../../../src/index.js';
import { Fields } from '../../../src/policy/fields.js';
import type { TierDocument } from '../../../src/policy/policy.js';
import { readTier } from '../../../src/policy/tier.js';
import { Replay, type ReplayOptions } from '../../../src/replay/index.js';
import { ceilingLimit, localLimit } from '../../../src/replay/limit.js';
import { MostDenied } from '../../../src/replay/most-denied.js';
import { RecentKeys } from '../../../src/replay/recent-keys.js';
import { SmallestRate } from '../../../src/replay/smallest-rate.js';
import { Timeline } from '../../../src/replay/timeline.js';
import { ManualTime } from '../../../src/testing.js';

const START = 1_700_000_000_000_000;
const MS = 1_000;

interface Ask {
  readonly gapMs: number;
  readonly key: string;
  readonly cost: number;
}
const asks = fc.array(
  fc.record({ gapMs: fc.nat(3_000), key: fc.constantFrom('a', 'b'), cost: fc.integer({ min: 1, max: 4 }) }),
  { minLength: 1, maxLength: 60 },
);

function replayed(document: Omit<PolicyDocument, 'name'>, list: readonly Ask[], options?: ReplayOptions) {
  const replay = new Replay(parsePolicy({ name: 'api', ...document }), options);
  let at = START;
  const decisions = list.map(({ gapMs, key, cost }) => {
    at += gapMs * MS;
    return replay.decide({ at, key, cost });
  });
  return { decisions, report: replay.report() };
}

const sizingOf = (document: Omit<PolicyDocument, 'name'>, list: readonly Ask[], tier = 0) => {
  const sizing = replayed(document, list).report.tiers[tier]?.sizing;
  if (!sizing) throw new Error('Expected a sizing.');
  return sizing;
};

describe('a replay', () => {
  it('decides a local tier as a limiter would have done at these times', async () => {
    await fc.assert(
      fc.asyncProperty(asks, async (list) => {
        const local = { rate: 2, burst: 4 };
        const time = new ManualTime();
        const limiter = await createLimiter({ policies: [{ name: 'api', local }], time });
        const expected: boolean[] = [];
        for (const { gapMs, key, cost } of list) {
          time.stall(gapMs);
          expected.push(limiter.policy('api').tryAcquire(key, cost));
        }
        await limiter.close();
        expect(replayed({ local }, list).decisions).toEqual(expected);
      }),
    );
  });

  it('decides a ceiling as one exact bucket', () => {
    fc.assert(
      fc.property(asks, (list) => {
        // A third of a token a second, burst 4, counted in thirds of a millionth so that nothing is rounded.
        const levels = new Map<string, { thirds: bigint; at: number }>();
        const full = 4n * 3_000_000n;
        let at = START;
        const expected = list.map(({ gapMs, key, cost }) => {
          at += gapMs * MS;
          const known = levels.get(key) ?? { thirds: full, at };
          const gained = BigInt(Math.max(0, at - known.at));
          const reached = known.thirds + gained;
          // Full as of the next microsecond: the ledger's rule.
          const level =
            reached >= full
              ? { thirds: full, at: Math.max(known.at, at + 1) }
              : { thirds: reached, at: Math.max(known.at, at) };
          const passes = level.thirds >= BigInt(cost) * 3_000_000n;
          levels.set(key, passes ? { ...level, thirds: level.thirds - BigInt(cost) * 3_000_000n } : level);
          return passes;
        });
        expect(replayed({ ceiling: { rate: 1, per: '3s', burst: 4 } }, list).decisions).toEqual(expected);
      }),
    );
  });

  it('charges both tiers or none, and asks the local one first', () => {
    const document = { local: { rate: 1, per: '1h', burst: 3 }, ceiling: { rate: 1, per: '1h', burst: 2 } } as const;
    const ask = (cost: number): Ask => ({ gapMs: 0, key: 'a', cost });
    const { decisions, report } = replayed(document, [ask(1), ask(2), ask(1), ask(1), ask(4)]);
    // Of the ceiling's two one is left for the second: its two are denied, and the local tier keeps them.
    expect(decisions).toEqual([true, false, true, false, false]);
    expect(report).toMatchObject({ admitted: 2, denied: 3, aboveBurst: 1, offeredTokens: 9, admittedTokens: 2 });
    expect(report.tiers).toMatchObject([
      { tier: 'local', denied: 1 },
      { tier: 'ceiling', denied: 2 },
    ]);
    expect(report.mostDenied).toEqual([{ key: 'a', denied: 3, atMost: 3 }]);
  });

  it('deals requests out to instances, each with a local tier of its own, under one ceiling', () => {
    const ask: Ask = { gapMs: 0, key: 'a', cost: 1 };
    const local = { rate: 1, per: '1h', burst: 2 } as const;
    expect(replayed({ local }, Array(8).fill(ask), { instances: 3 }).report.admitted).toBe(6);
    expect(replayed({ ceiling: local }, Array(8).fill(ask), { instances: 3 }).report.admitted).toBe(2);
  });

  it('heeds overrides and modes', () => {
    const ask = (key: string): Ask => ({ gapMs: 0, key, cost: 1 });
    const document: Omit<PolicyDocument, 'name'> = {
      ceiling: { rate: 1, per: '1h', burst: 1 },
      overrides: { vip: { ceiling: { rate: 1, per: '1h', burst: 3 } }, bad: { mode: 'deny' }, own: { mode: 'allow' } },
    };
    const list = ['vip', 'bad', 'own', 'else'].flatMap((key) => Array(4).fill(ask(key)));
    const { decisions, report } = replayed(document, list);
    const admitted = (index: number) => decisions.slice(4 * index, 4 * index + 4).filter(Boolean).length;
    expect([0, 1, 2, 3].map(admitted)).toEqual([3, 0, 4, 1]);
    expect(report.deniedByMode).toBe(4);
    // Sizes are those of the policy's own terms.
    expect(report.tiers[0]?.sizing?.smallestBurst).toBe(4);
  });

  it.each<[TierDocument, readonly number[], readonly boolean[]]>([
    // Two a minute of the clock: the second window begins at the full minute, 40 s after START.
    [{ algorithm: 'fixed-window', limit: 2, window: '1m' }, [0, 0, 39, 1, 0], [true, true, false, true, true]],
    [{ algorithm: 'sliding-window-log', limit: 2, window: '10s' }, [0, 5, 4, 1, 4], [true, true, false, true, false]],
    // 4 s into the next window 0.6 of the two still count, and one is room for.
    [
      { algorithm: 'sliding-window-counter', limit: 2, window: '10s' },
      [0, 0, 9, 5, 4],
      [true, true, false, false, true],
    ],
    // One leaves, two wait for 10 s and 20 s; there is room again when the first of them has left.
    [{ algorithm: 'leaky-bucket', rate: 6, per: '1m', queue: 2 }, [0, 0, 0, 0, 10], [true, true, true, false, true]],
  ])('decides %j by the production code, in either tier', (document, gaps, expected) => {
    const fields = Fields.read({ local: document, ceiling: document }, '', '');
    const local = readTier(fields, 'local')?.local;
    const ceiling = readTier(fields, 'ceiling')?.ceiling;
    if (!local || !ceiling) throw new Error('Expected two tiers.');
    for (const newLimit of [localLimit(local), ceilingLimit(ceiling)]) {
      let now = START;
      const limit = newLimit(now);
      expect(limit.isUntouched(now)).toBe(true);
      const decisions = gaps.map((gap) => {
        now += gap * 1e6;
        const passes = limit.has(1, now);
        if (passes) limit.take(1, now);
        return passes;
      });
      expect(decisions).toEqual(expected);
      expect(limit.isUntouched(now)).toBe(false);
      expect(limit.isUntouched(now + 3_600e6)).toBe(true);
    }
  });

  it('refuses an algorithm that it does not know, by name', () => {
    const { local, ceiling } = parsePolicy({
      name: 'a',
      local: { rate: 1, burst: 1 },
      ceiling: { rate: 1, burst: 1 },
    }).terms;
    const message = 'to have an algorithm that can be replayed, got "token-ring".';
    expect(() => localLimit({ ...local, algorithm: 'token-ring' } as never)).toThrow(`Expected \`local\` ${message}`);
    expect(() => ceilingLimit({ ...ceiling, algorithm: 'token-ring' } as never)).toThrow(
      `Expected \`ceiling\` ${message}`,
    );
  });
});

describe('the smallest burst', () => {
  it('would have denied nobody, and a millionth less somebody', () => {
    fc.assert(
      fc.property(asks, (list) => {
        const { smallestBurst: burst } = sizingOf({ ceiling: { rate: 1, per: '3s', burst: 4 } }, list);
        const denied = (burst: number) => replayed({ ceiling: { rate: 1, per: '3s', burst } }, list).report.denied;
        expect(denied(burst)).toBe(0);
        expect(denied(Math.round(burst * 1e6 - 1) / 1e6)).toBeGreaterThan(0);
        // What is enough for the ledger's bucket is enough for that of an instance.
        expect(replayed({ local: { rate: 1, per: '3s', burst } }, list).report.denied).toBe(0);
      }),
    );
  });
});

describe('the smallest rate', () => {
  const document = (rate: number) => ({ ceiling: { rate, per: '1h', burst: 4 } }) as const;

  it('would have denied nobody, and a little less somebody', () => {
    fc.assert(
      fc.property(asks, (list) => {
        const { smallestRate, rateIsAbout } = sizingOf(document(1), list);
        expect(rateIsAbout).toBe(false);
        if (smallestRate === undefined) {
          // More than the burst at one moment: no rate would do.
          expect(replayed(document(1e6), list).report.denied).toBeGreaterThan(0);
          return;
        }
        const anHour = smallestRate * 3_600;
        expect(replayed(document(Math.max(1e-6, Math.ceil(anHour * 1e6) / 1e6)), list).report.denied).toBe(0);
        if (anHour > 1e-3)
          expect(replayed(document(Math.floor(anHour * 1e6 - 10) / 1e6), list).report.denied).toBeGreaterThan(0);
      }),
    );
  });

  it('is never below the smallest where there is room for few corners, and little above it', () => {
    const gaps = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 2, maxLength: 200 });
    fc.assert(
      fc.property(gaps, fc.integer({ min: 3, max: 6 }), (gaps, corners) => {
        const exact = new SmallestRate(3e6, 1_000);
        const rough = new SmallestRate(3e6, corners);
        const hulls = [exact.newHull(), rough.newHull()] as const;
        let now = START;
        for (const gap of gaps) {
          now += gap * MS;
          exact.see(hulls[0], 1, now);
          rough.see(hulls[1], 1, now);
          expect(hulls[1].at.length).toBeLessThanOrEqual(corners);
        }
        expect(rough.perSecond).toBeGreaterThanOrEqual(exact.perSecond * (1 - 1e-9));
        if (!rough.widened) expect(rough.perSecond).toBe(exact.perSecond);
      }),
    );
  });
});

describe('what a replay remembers', () => {
  it('is the newest keys, at least half as many as there is room for, and what is forgotten is told', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(30)), fc.integer({ min: 2, max: 12 }), (seen, most) => {
        const dropped: string[] = [];
        const keys = new RecentKeys<string>(most, (states) => dropped.push(...states));
        const met = new Set<string>();
        for (const [index, number] of seen.entries()) {
          const key = `k${number}`;
          const others = new Set(seen.slice(seen.lastIndexOf(number, index - 1) + 1, index));
          const known = keys.get(key);
          if (index > 0 && seen.lastIndexOf(number, index - 1) >= 0 && others.size < Math.floor(most / 2))
            expect(known).toBe(key);
          if (known === undefined && met.has(key)) expect(dropped).toContain(key);
          if (known === undefined) keys.add(key, key);
          met.add(key);
        }
      }),
    );
  });

  it('of the keys denied most is exact while they are few, and says by how much it may be wrong else', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(12), { maxLength: 300 }), fc.integer({ min: 1, max: 4 }), (keys, kept) => {
        const most = new MostDenied(kept);
        const exact = new Map<string, number>();
        for (const number of keys) {
          const key = `k${number}`;
          most.add(key);
          exact.set(key, (exact.get(key) ?? 0) + 1);
        }
        const top = most.top(100);
        for (const { key, denied, atMost } of top) {
          expect(denied).toBeLessThanOrEqual(exact.get(key) as number);
          expect(atMost).toBeGreaterThanOrEqual(exact.get(key) as number);
        }
        if (exact.size <= 2 * kept)
          expect(Object.fromEntries(top.map(({ key, denied }) => [key, denied]))).toEqual(Object.fromEntries(exact));
      }),
    );
  });

  it('of the time is every request once, in spans that are as fine as there is room for', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(500_000_000), fc.boolean()), { minLength: 1 }), (list) => {
        const timeline = new Timeline(16);
        let at = START;
        for (const [gap, allowed] of list) {
          at += gap;
          timeline.count(allowed, at);
        }
        const sum = (counts: readonly number[]) => counts.reduce((total, n) => total + n, 0);
        expect(sum(timeline.admitted)).toBe(list.filter(([, allowed]) => allowed).length);
        expect(sum(timeline.denied)).toBe(list.filter(([, allowed]) => !allowed).length);
        expect(timeline.admitted.length).toBe(Math.floor((at - (timeline.from as number)) / timeline.every) + 1);
        expect(timeline.admitted.length).toBeLessThanOrEqual(16);
        if (timeline.every > 1e6) expect(timeline.admitted.length).toBeGreaterThan(8);
      }),
    );
  });
});
