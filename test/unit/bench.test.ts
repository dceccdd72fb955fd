import { describe, expect, it } from 'vitest';
// Plain JavaScript, so that `npm run bench` runs it without a build of its own.
// @ts-expect-error It has no types.
import { steadyFleet } from '../../bench/contenders/steady-fleet.mjs';
// @ts-expect-error It has no types.
import { drawKeys, FreshKeys, keyName } from '../../bench/harness/keys.mjs';
// @ts-expect-error It has no types.
import { figure, markdownTable, Report } from '../../bench/harness/report.mjs';
// @ts-expect-error It has no types.
import { median, percentile, seeded, shuffle, spread } from '../../bench/harness/statistics.mjs';
import { createLimiter } from '../../src/index.js';
import { ManualTime, MemoryCeiling, storeClock } from '../../src/testing.js';

const headgate = { createLimiter, ManualTime, MemoryCeiling, storeClock };

describe('a fleet in a steady state, on virtual time', () => {
  it('asks the store at most 10 times for 1000 decisions at 80 % of the ceiling', async () => {
    const { callsPer1000, allowedShare } = await steadyFleet(headgate, { instances: 20, perSecond: 500, seconds: 1 });

    expect(callsPer1000).toBeGreaterThan(0);
    expect(callsPer1000).toBeLessThanOrEqual(10);
    expect(allowedShare).toBeGreaterThanOrEqual(0.99);
  }, 60_000);
});

describe('statistics', () => {
  it('take the middle, or the mean of the two in the middle', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(spread([3, 1, 2])).toEqual({ median: 2, least: 1, most: 3, samples: 3 });
  });

  it('find what a fraction of the values does not exceed', () => {
    const values = Array.from({ length: 100 }, (_, i) => i + 1);
    expect([0, 0.5, 0.99, 1].map((p) => percentile(values, p))).toEqual([1, 51, 100, 100]);
  });

  it('shuffle by permuting, and repeat what the seed says', () => {
    const items = Array.from({ length: 50 }, (_, i) => i);
    const shuffled = shuffle([...items], seeded(3));
    expect(shuffled).not.toEqual(items);
    expect(shuffled.sort((a: number, b: number) => a - b)).toEqual(items);
    expect(seeded(5)()).toBe(seeded(5)());
  });
});

describe('keys', () => {
  it('have 19 characters, and come as new strings of the same text', () => {
    const feed = new Array(4).fill('');
    new FreshKeys(3).fill(feed, Uint32Array.of(2, 0), 1);
    expect(feed).toEqual([keyName(0), keyName(2), keyName(0), keyName(2)]);
    expect(keyName(1_234_567)).toHaveLength(19);
  });

  it('are drawn by rank, the first as often as a Zipf law of exponent 1 says', () => {
    const counts = new Map<number, number>();
    for (const key of drawKeys('zipf', 1_000, 100_000) as Uint32Array) counts.set(key, (counts.get(key) ?? 0) + 1);
    const ranked = [...counts.values()].sort((a, b) => b - a);
    // 1 / H(1000) = 0.1336 of all.
    expect((ranked[0] ?? 0) / 100_000).toBeGreaterThan(0.128);
    expect((ranked[0] ?? 0) / 100_000).toBeLessThan(0.139);
    expect((ranked[0] ?? 0) / (ranked[9] ?? 1)).toBeGreaterThan(8);
  });
});

describe('tables', () => {
  it('are Markdown, the first column to the left and figures to the right', () => {
    expect(
      markdownTable(
        ['', 'ns'],
        [
          ['a', '1'],
          ['longer', '200'],
        ],
      ),
    ).toBe(['|        |  ns |', '|--------|----:|', '| a      |   1 |', '| longer | 200 |'].join('\n'));
  });

  it('show three digits that mean something', () => {
    expect([0, 0.001234, 0.5, 12.34, 1234.5, Number.NaN, Number.POSITIVE_INFINITY].map(figure)).toEqual([
      '0.00',
      '0.0012',
      '0.50',
      '12.3',
      '1,235',
      '',
      '∞',
    ]);
  });
});

describe('a report', () => {
  const part = (name: string) => ({
    tables: [{ caption: name, head: ['', 'ns'], rows: [['a', '1']] }],
    goals: [{ goal: `${name} <= 2`, measured: '1', met: true }],
    versions: { [name]: '1.0.0' },
    data: { [name]: [1] },
  });

  it('prints each table as it comes, and goals at the end', () => {
    const printed: string[] = [];
    const report = new Report({ benchmark: 'b', quick: true, json: false }, (text: string) => printed.push(text));
    report.add(part('first'));
    expect(printed.at(-1)).toContain('| a   |   1 |');
    expect(printed.join()).not.toContain('<= 2');
    report.add(part('second'));
    report.end(true);
    expect(printed.at(-1)).toMatch(/first <= 2.*\n.*second <= 2/);
    expect(printed.join()).not.toContain('Cut short');
  });

  it('is one JSON document of all parts, also where it was cut short', () => {
    const printed: string[] = [];
    const report = new Report({ benchmark: 'b', quick: false, json: true }, (text: string) => printed.push(text));
    report.add(part('first'));
    report.add(part('second'));
    expect(printed).toEqual([]);
    report.end(false);
    expect(JSON.parse(printed.join())).toMatchObject({
      benchmark: 'b',
      complete: false,
      tables: [{ caption: 'first' }, { caption: 'second' }],
      goals: [{ met: true }, { met: true }],
      versions: { first: '1.0.0', second: '1.0.0' },
      data: { first: [1], second: [1] },
    });
  });
});
