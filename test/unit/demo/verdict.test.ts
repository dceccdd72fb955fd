import { describe, expect, it } from 'vitest';
import { renderReport } from '../../../src/demo/report.js';
import { type FleetHistory, jain, judge } from '../../../src/demo/verdict.js';

const START = 1_000_000;
const SECOND = 1_000;

/** Admissions at an even rate, in ms from the start. */
function even(perSecond: number, fromMs: number, toMs: number): Float64Array {
  const n = Math.floor(((toMs - fromMs) / SECOND) * perSecond);
  return Float64Array.from({ length: n }, (_, i) => START + fromMs + (i + 0.5) * (SECOND / perSecond));
}

function history(overrides: Partial<FleetHistory> = {}): FleetHistory {
  return {
    startAt: START,
    endAt: START + 10 * SECOND,
    terms: { rate: 100, burst: 100 },
    change: undefined,
    instances: [0, 1].map((instance) => ({ instance, admissions: even(50, 0, 10 * SECOND), absent: [] })),
    decisions: 3_000,
    leaseCalls: 30,
    decisionNs: { p50: 300, p99: 2_000 },
    ...overrides,
  };
}

describe('judge', () => {
  it('finds a fleet that uses its ceiling fairly to be just that', () => {
    const verdict = judge(history());
    expect(verdict).toMatchObject({ ok: true, admitted: 1_000, ceilingCallsPer1000Decisions: 10 });
    expect(verdict.utilisation).toBeCloseTo(1, 2);
    expect(verdict.fairness).toBeCloseTo(1, 6);
  });

  it('says that the bound is broken where one instance counts for itself what the fleet shares', () => {
    const instances = [0, 1].map((instance) => ({ instance, admissions: even(80, 0, 10 * SECOND), absent: [] }));
    const verdict = judge(history({ instances }));
    expect(verdict.ok).toBe(false);
    expect(verdict.windows[0]?.headroom).toBeLessThan(0);
  });

  it('expects of an instance that died only what it could have had while it lived', () => {
    const died = START + 6 * SECOND;
    const instances = [
      { instance: 0, admissions: Float64Array.from([...even(50, 0, 6_000), ...even(100, 6_000, 10_000)]), absent: [] },
      { instance: 1, admissions: even(50, 0, 6_000), absent: [{ from: died, to: Number.POSITIVE_INFINITY }] },
    ];
    const verdict = judge(history({ instances }));
    expect(verdict.utilisation).toBeCloseTo(1, 2);
    expect(verdict.fairness).toBeGreaterThan(0.9999);
  });

  it('measures utilisation against the rates that were in force', () => {
    const change = {
      after: { rate: 50, burst: 50 },
      from: START + 5_000,
      until: START + 5_000,
      outstanding: 0,
      settledAt: START + 6_000,
    };
    const admissions = Float64Array.from([...even(50, 0, 5_000), ...even(25, 5_000, 10_000)]);
    const verdict = judge(
      history({ change, instances: [0, 1].map((instance) => ({ instance, admissions, absent: [] })) }),
    );
    expect(verdict.ok).toBe(true);
    expect(verdict.utilisation).toBeCloseTo(1, 2);
    expect(verdict.windows.map(({ phase }) => phase)).toEqual(['before', 'across', 'after']);
  });

  it('knows an unfair fleet', () => {
    expect(jain([1, 1, 1, 1])).toBe(1);
    expect(jain([4, 0, 0, 0])).toBe(0.25);
    expect(jain([])).toBe(1);
  });
});

describe('renderReport', () => {
  const change = {
    after: { rate: 50, burst: 50 },
    from: START + 5_000,
    until: START + 5_001,
    outstanding: 0,
    settledAt: START + 6_000,
  };
  const told = history({ change });
  const page = renderReport(told, { ...judge(told), ok: true });

  it('needs nothing but itself', () => {
    expect(page).not.toMatch(/(src|href)=|url\(|@import|<script|https?:/);
  });

  it('shows the verdict, a band for each instance, the ceiling and what happened', () => {
    expect(page.match(/<polygon/g)).toHaveLength(2);
    expect(page).toContain('class="ceiling"');
    expect(page).toContain('policy tightened');
    expect(page).toContain('The bound held');
    expect(page).not.toMatch(/NaN|Infinity|undefined/);
    expect(page).toContain('prefers-color-scheme: dark');
  });

  it('says so where the bound was broken', () => {
    expect(renderReport(told, { ...judge(told), ok: false })).toContain('The bound was broken.');
  });
});
