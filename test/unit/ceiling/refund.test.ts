import { describe, expect, it } from 'vitest';
import type { GrantReply, LeaseCall, LeaseReply, WindowCall } from '../../../src/ceiling/ceiling-store.js';
import { type Execution, execute, newPartition, type Partition, suspect } from '../../../src/ceiling/ledger.js';
import { MICRO } from '../../../src/units.js';
import { leaseCall } from '../../contract/ceiling-store.js';

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
/** The beginning of a minute. */
const START = 1_800_000_000_000_000;

/** A bucket of ten, the holder that spends from it, and the clock. */
class Ledger {
  readonly partition: Partition;
  readonly #fixed: Partial<LeaseCall>;
  now = START;
  #seq = 0;

  constructor(fixed: Partial<LeaseCall>) {
    this.#fixed = { key: 'k', holder: 'holder-of-refunds', rateDen: 3_600, guard: 0, ...fixed };
    this.partition = newPartition(this.#execution);
  }

  get #execution(): Execution {
    return { now: this.now, newEra: 'era', newStore: 'full' };
  }

  send(changes: Partial<LeaseCall>): LeaseReply {
    this.#seq += 1;
    const call = leaseCall({ ...this.#fixed, seq: this.#seq, sentAt: this.now, ...changes });
    return execute(this.partition, call, this.#execution);
  }

  /** Draws, and reports as spent at once. */
  spend(tokens: number): number {
    const { granted } = this.send({ need: tokens * MICRO, head: tokens * MICRO }) as GrantReply;
    this.send({});
    return granted / MICRO;
  }

  refund(tokens: number, refundSince = 0): void {
    this.send({ refund: tokens * MICRO, refundSince });
  }

  get left(): number {
    return (this.partition.buckets.get('api:k')?.level.tokens ?? Number.NaN) / MICRO;
  }
}

function under(rule: WindowCall['rule']): Ledger {
  return new Ledger({ window: { rule, length: MINUTE, start: START, end: START + MINUTE } });
}

describe('a refund through the store', () => {
  it('of a fixed window comes back into the window that it was spent in, and into no other', () => {
    for (const rule of ['epoch', 'first-use', 'calendar'] as const) {
      const ledger = under(rule);
      const spentAt = ledger.now;
      expect(ledger.spend(6)).toBe(6);
      ledger.now += SECOND;
      ledger.refund(2, spentAt);
      expect(ledger.left).toBe(6);
      if (rule === 'calendar') continue;
      ledger.now += MINUTE;
      expect(ledger.spend(6)).toBe(6);
      ledger.refund(4, spentAt);
      expect(ledger.left).toBe(4);
      ledger.refund(4, ledger.now);
      expect(ledger.left).toBe(8);
      // What nobody says the time of is taken to be of the window under way.
      ledger.refund(9);
      expect(ledger.left).toBe(10);
    }
  });

  it('of a log never lets more than the limit be spent in a window, whichever spend it was of', () => {
    const ledger = under('log');
    expect(ledger.spend(5)).toBe(5);
    ledger.now += 50 * SECOND;
    expect(ledger.spend(5)).toBe(5);
    // Of the first five. Were the newest entry lowered, five more could be spent when the first has left the window.
    ledger.now += SECOND;
    ledger.refund(5);
    expect(ledger.spend(5)).toBe(5);
    ledger.now += 9 * SECOND;
    expect(ledger.spend(1)).toBe(0);
    ledger.now += 50 * SECOND;
    expect(ledger.spend(5)).toBe(5);
  });

  it('of a log comes back for good where it is known when it was spent', () => {
    const ledger = under('log');
    expect(ledger.spend(5)).toBe(5);
    ledger.now += 50 * SECOND;
    const spentAt = ledger.now;
    expect(ledger.spend(5)).toBe(5);
    ledger.refund(5, spentAt);
    ledger.now += 11 * SECOND;
    expect(ledger.left).toBe(5);
    ledger.send({});
    expect(ledger.left).toBe(10);
  });

  it('of a counter counts in the window before for what of it still counts, unless it was spent since', () => {
    const ledger = under('counter');
    expect(ledger.spend(8)).toBe(8);
    ledger.now += 90 * SECOND;
    expect(ledger.spend(4)).toBe(4);
    expect(ledger.left).toBeCloseTo(2, 4);
    ledger.refund(4);
    expect(ledger.left).toBeCloseTo(4, 4);
    ledger.refund(2, START + MINUTE);
    expect(ledger.left).toBeCloseTo(6, 4);
    ledger.refund(10);
    expect(ledger.left).toBe(10);
  });

  it('is held to its part of the burst after a loss, under the strict rule', () => {
    const ledger = new Ledger({ guard: 3 * SECOND });
    ledger.spend(10);
    ledger.now += SECOND;
    suspect(ledger.partition, 'another era', ledger.now);
    ledger.refund(10);
    expect(ledger.left).toBe(6);
  });
});
