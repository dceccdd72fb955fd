import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Admission, backAfter, type WindowRule, worstWindow } from './window-oracle.js';

const TERMS = { what: 'any window', ratePerSecond: 100, burst: 10 };

const at = (...times: number[]): Admission[] => times.map((time) => ({ at: time, cost: 1, key: 0 }));

/** The same by its definition: every window that begins and ends with an admission. */
function worstByDefinition(admissions: readonly Admission[], rule: WindowRule): number {
  let worst = -rule.burst;
  for (const [i, first] of admissions.entries()) {
    if (first.at < (rule.beginsFrom ?? -Infinity) || first.at >= (rule.beginsBefore ?? Infinity)) continue;
    let admitted = 0;
    for (const last of admissions.slice(i)) {
      admitted += last.cost;
      if (last.at >= (rule.endsBefore ?? Infinity)) break;
      worst = Math.max(worst, admitted - allowedByDefinition(first.at, last.at, rule));
    }
  }
  return worst;
}

/** Tokens allowed from one moment to the next, millisecond by millisecond, where terms change at whole ones. */
function allowedByDefinition(from: number, to: number, { ratePerSecond, burst, changes = [] }: WindowRule): number {
  const factorAt = (ms: number): number => changes.findLast((change) => ms >= change.from)?.factor ?? 1;
  let allowed = burst * factorAt(from);
  for (let ms = from; ms < to; ms++) allowed += (ratePerSecond / 1_000) * factorAt(ms);
  return allowed;
}

describe('worstWindow', () => {
  it('finds nothing over in a burst at once and the rate from then on', () => {
    const times = [...Array(10).fill(0), 10, 20, 30, 40];
    expect(worstWindow(at(...times), TERMS).excess).toBe(0);
  });

  it('finds one token too many, and the window it is in', () => {
    const { excess, from, to, admitted } = worstWindow(at(-500, ...Array(10).fill(0), 10, 15), TERMS);
    expect({ excess, from, to, admitted }).toEqual({ excess: 0.5, from: 0, to: 15, admitted: 12 });
  });

  it('looks at each key by itself', () => {
    const admissions = [0, 1].flatMap((key) => at(...Array(10).fill(0)).map((admission) => ({ ...admission, key })));
    expect(worstWindow(admissions, TERMS).excess).toBe(0);
    expect(worstWindow(admissions.slice(5), { ...TERMS, key: 0 }).excess).toBe(-5);
  });

  it('agrees with looking at every window, whatever the rule leaves out', () => {
    const time = fc.integer({ min: 0, max: 400 });
    fc.assert(
      fc.property(
        fc.array(fc.record({ at: time, cost: fc.integer({ min: 1, max: 4 }) }), { maxLength: 40 }),
        fc.record({ beginsFrom: time, beginsBefore: time, endsBefore: time }, { requiredKeys: [] }),
        fc.array(fc.record({ from: time, factor: fc.constantFrom(0.5, 1.5, 2) }), { maxLength: 3 }),
        (records, limits, unsorted) => {
          const admissions = records.map((record) => ({ ...record, key: 0 })).sort((a, b) => a.at - b.at);
          const changes = unsorted.toSorted((a, b) => a.from - b.from);
          const rule = { ...TERMS, ...limits, changes };
          expect(worstWindow(admissions, rule).excess).toBeCloseTo(worstByDefinition(admissions, rule), 9);
        },
      ),
    );
  });
});

describe('backAfter', () => {
  const steady = { ratePerSecond: 100, lengthMs: 100 };

  it('is 0 where the rate was never missed', () => {
    const times = Array.from({ length: 20 }, (_, i) => i * 10);
    expect(backAfter(at(...times), 0, steady)).toBe(0);
  });

  it('is the beginning of the first window with enough in it', () => {
    const times = [0, 30, 60, ...Array.from({ length: 20 }, (_, i) => 100 + i * 10)];
    expect(backAfter(at(...times), 0, steady)).toBe(100);
  });

  it('is not known while no window has enough', () => {
    expect(backAfter(at(0, 20, 40, 60, 80, 100, 120), 0, steady)).toBeUndefined();
  });
});
