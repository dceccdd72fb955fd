import { describe, expect, it } from 'vitest';
import type { GrantReply, LeaseCall } from '../../../src/ceiling/ceiling-store.js';
import { MemoryCeiling } from '../../../src/ceiling/memory-ceiling.js';
import { Dice } from '../../../src/simulation/random.js';
import { MICRO } from '../../../src/units.js';
import { leaseCall } from '../../contract/ceiling-store.js';

const MS = 1_000;
const SECOND = 1_000_000;
/** Ten tokens, ten a second: ten micro-tokens a microsecond. */
const TERMS = { burst: 10 * MICRO, rateNum: 10, rateDen: 1 };
const LEASE = 30 * SECOND;

/** A bucket of ten that gains ten a second, and a clock. */
class Bucket {
  now = 1_800_000_000_000_000;
  readonly #store = new MemoryCeiling({ clock: () => this.now, newStore: 'full' });
  #seq = 0;

  async call(changes: Partial<LeaseCall>): Promise<number> {
    this.#seq += 1;
    const call = leaseCall({ key: 'k', ...TERMS, lease: LEASE, seq: this.#seq, sentAt: this.now, ...changes });
    return ((await this.#store.lease([call])[0]) as GrantReply).granted;
  }

  /** What is in it; nothing is reserved for anybody, as nobody has been refused. */
  get level(): number {
    return this.#store.leftNow(leaseCall({ key: 'k', ...TERMS }));
  }
}

describe('tokens that are lent and come back (C151)', () => {
  it('are neither lost nor found: one lent and given back ten times a second for a minute', async () => {
    const bucket = new Bucket();
    const holder = 'one'.padEnd(16, '-');
    for (let i = 0; i < 600; i++) {
      expect(await bucket.call({ holder, need: MICRO })).toBe(MICRO);
      expect(bucket.level).toBe(9 * MICRO);
      bucket.now += 100 * MS;
      await bucket.call({ holder, returned: MICRO });
      expect(bucket.level).toBe(10 * MICRO);
    }
  });

  it('leave the level that arithmetic says, to the micro-token, after an hour of loans, returns and lease ends', async () => {
    const random = new Dice(151, 'returned tokens').roll;
    const bucket = new Bucket();
    const held = new Map<string, number>();
    let level: number = TERMS.burst;
    let out = 0;
    let paidUntil = bucket.now;
    /** A full bucket is not paid for the microsecond that it is full in. */
    const capped = (): void => {
      if (level < TERMS.burst - out) return;
      level = TERMS.burst - out;
      paidUntil = Math.max(paidUntil, bucket.now + 1);
    };
    const pass = (us: number): void => {
      bucket.now += us;
      level += Math.max(0, bucket.now - paidUntil) * 10;
      paidUntil = Math.max(paidUntil, bucket.now);
      capped();
    };
    for (const end = bucket.now + 3_600 * SECOND; bucket.now < end; ) {
      pass(Math.floor(random() * 300 * MS));
      const holder = `holder-${Math.floor(random() * 5)}`.padEnd(16, '-');
      const had = held.get(holder) ?? 0;
      const returned = Math.floor(random() * (had + 1));
      const spent = Math.floor(random() * (had - returned + 1));
      const unspent = had - returned - spent;
      out -= returned + spent;
      level += returned;
      capped();
      const need = Math.min(level, Math.floor(random() * 2 * MICRO));
      const granted = await bucket.call({ holder, unspent, returned, need });
      expect(granted).toBe(need);
      level -= granted;
      out += granted;
      held.set(holder, unspent + granted);
      if (random() < 0.01) {
        // All of them stop. What they hold counts as spent at their leases' end, and has been earned anew by then.
        bucket.now += 2 * LEASE;
        held.clear();
        out = 0;
        level = TERMS.burst;
        capped();
      }
      expect(bucket.level).toBe(level);
    }
    expect(bucket.level).toBe(level);

    // Saturated, it brings its rate.
    let admitted = 0;
    const taker = 'takes'.padEnd(16, '-');
    const from = bucket.now;
    for (admitted -= bucket.level; bucket.now < from + 100 * SECOND; bucket.now += 50 * MS) {
      admitted += await bucket.call({ holder: taker, need: bucket.level });
    }
    expect(Math.abs(admitted / MICRO / 100 / 10 - 1)).toBeLessThan(0.01);
  });
});
