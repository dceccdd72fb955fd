import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { leaseGrace, MAX_SKEW_US } from '../../src/ceiling/ceiling-store.js';
import { MemoryCeiling } from '../../src/ceiling/memory-ceiling.js';
import { MICRO } from '../../src/units.js';
import { probe, termsOf } from '../support/fleet/bucket-view.js';

const BURST = 50;
const LEASE_US = 500_000;
const START_US = 1_700_000_000_000_000;
const POLICY = { name: 'p', version: 1, ceiling: { rate: BURST, burst: BURST, per: 200 } } as const;
const PER_US = BURST / 200_000;

/** A store whose clock is set as the test says, and one who takes all there is and says so at once. */
class Drained {
  trueUs = 0;
  offsetUs = 0;
  readonly store = new MemoryCeiling({ clock: () => START_US + this.trueUs + this.offsetUs, newStore: 'full' });
  #seq = 0;
  admitted = 0;

  take(holder = 'greedy--', spentAtOnce = true): number {
    const all = { need: BURST * MICRO, head: 1, lease: LEASE_US, holder };
    this.#seq += 1;
    const reply = this.store.leaseNow({ ...probe(termsOf(POLICY)), ...all, seq: this.#seq });
    const granted = reply.status === 'granted' ? reply.granted / MICRO : 0;
    if (!spentAtOnce) return granted;
    this.admitted += granted;
    this.#seq += 1;
    this.store.leaseNow({ ...probe(termsOf(POLICY)), lease: LEASE_US, holder, seq: this.#seq });
    return granted;
  }
}

/** How long to wait, and by how much the store's clock is then set forward or back. */
const moves = (least: number, most: number) =>
  fc.array(fc.record({ waitUs: fc.integer({ min: 0, max: 300_000 }), stepUs: fc.integer({ min: least, max: most }) }), {
    minLength: 1,
    maxLength: 60,
  });

describe('a store whose clock steps back and forth', () => {
  it('mints min(R·s, B) for each step forward by s at most, and nothing for a step back (C28, C29)', () => {
    fc.assert(
      fc.property(moves(-5_000_000, 5_000_000), (moves) => {
        const under = new Drained();
        under.take();
        let minted = 0;
        for (const { waitUs, stepUs } of moves) {
          under.trueUs += waitUs;
          under.take();
          under.offsetUs += stepUs;
          minted += Math.min(Math.max(0, stepUs) * PER_US, BURST);
          under.take();
        }
        expect(under.admitted).toBeLessThanOrEqual(BURST + under.trueUs * PER_US + minted + 1e-6);
      }),
      { numRuns: 300 },
    );
  });

  it('mints nothing at all while it is never further off than maxSkew', () => {
    fc.assert(
      fc.property(moves(-MAX_SKEW_US, MAX_SKEW_US), (moves) => {
        const under = new Drained();
        under.take();
        for (const { waitUs, stepUs } of moves) {
          under.trueUs += waitUs;
          under.take();
          // Set right again as far as it goes: between maxSkew late and right.
          under.offsetUs = Math.min(0, Math.max(-MAX_SKEW_US, under.offsetUs + stepUs));
          under.take();
        }
        expect(under.admitted).toBeLessThanOrEqual(BURST + under.trueUs * PER_US + 1e-6);
      }),
      { numRuns: 300 },
    );
  });

  it('freezes nothing for longer than maxSkew and one lease with its grace, however it stepped', () => {
    fc.assert(
      fc.property(moves(-3_600_000_000, 3_600_000_000), fc.integer({ min: 1, max: 4 }), (moves, crashed) => {
        const under = new Drained();
        for (const { waitUs, stepUs } of moves) {
          under.trueUs += waitUs;
          for (let i = 0; i < crashed; i++) under.take(`crashed${i}`, false); // Whatever it gets is never heard of again.
          under.offsetUs += stepUs;
        }
        const longest = MAX_SKEW_US + LEASE_US + leaseGrace(LEASE_US) + 1_000_000 / PER_US / 1_000_000 + 1_000;
        let waited = 0;
        while (under.take() < 1) {
          under.trueUs += 5_000;
          waited += 5_000;
          expect(waited).toBeLessThanOrEqual(longest + 5_000);
        }
      }),
      { numRuns: 100 },
    );
  });
});
