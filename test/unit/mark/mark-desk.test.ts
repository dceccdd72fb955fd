import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MarkStore } from '../../../src/ceiling/mark-store.js';
import { MemoryMarks } from '../../../src/ceiling/memory-marks.js';
import { checkBlock, leftOf } from '../../../src/mark/block.js';
import { MarkDesk } from '../../../src/mark/mark-desk.js';
import { MarkedKeys } from '../../../src/mark/marked-keys.js';
import { ManualTime } from '../../../src/testing.js';

const EVERY_MS = 1_000;
type Fate = 'answer' | 'lose-reply' | 'lose-call' | 'reject';

/** A desk behind a wire of its own, on which a test can lose things. */
class Instance {
  readonly desk: MarkDesk;
  readonly marked = new MarkedKeys(() => ({ marked: (key, reset) => reset && this.cleared.push(key) }));
  readonly cleared: string[] = [];
  readonly troubles: Error[] = [];
  ready = true;
  /** Of what is said, and of what is asked. */
  said: Fate = 'answer';
  asked: Fate = 'answer';
  delayMs = 5;
  readonly #time: ManualTime;

  constructor(time: ManualTime, marks: MemoryMarks) {
    this.#time = time;
    const store: MarkStore = {
      mark: (call) => this.#carry(this.said, () => marks.mark(call)),
      feed: (era, seq, reading) => this.#carry(this.asked, () => marks.feed(era, seq, reading)),
    };
    const instance = this;
    this.desk = new MarkDesk({
      store: {
        get ready() {
          return instance.ready;
        },
        marks: store,
      },
      time,
      random: () => 0.5,
      observer: { trouble: (error) => this.troubles.push(error) },
      deadlineMs: 100,
      blocksEveryMs: EVERY_MS,
      marked: this.marked,
    });
    void this.desk.begin();
  }

  blocked(key: string): boolean {
    return (this.marked.of('api').get(key)?.end ?? 0) > this.#time.now();
  }

  block(key: string, lengths: number | readonly number[]): Promise<unknown> {
    const terms = checkBlock(lengths);
    const marked = this.marked.open('api', key);
    const [first] = terms.steps as [number];
    this.marked.hold(marked, Math.max(marked.end, this.#time.now() + leftOf(first, 0)));
    return this.desk.block(marked, terms);
  }

  unblock(key: string): Promise<void> {
    const marked = this.marked.open('api', key);
    this.marked.hold(marked, Number.NEGATIVE_INFINITY);
    return this.desk.unblock(marked);
  }

  reset(key: string): Promise<void> {
    const marked = this.marked.open('api', key);
    this.marked.hold(marked, Number.NEGATIVE_INFINITY, true);
    return this.desk.reset(marked, async () => {});
  }

  #carry<Reply>(fate: Fate, execute: () => Promise<Reply>): Promise<Reply> {
    const { delayMs } = this;
    return new Promise((resolve, reject) => {
      this.#time.after(delayMs, () => {
        if (fate === 'lose-call') return;
        if (fate === 'reject') {
          reject(new Error('ECONNRESET'));
          return;
        }
        const reply = execute();
        if (fate === 'answer') this.#time.after(delayMs, () => resolve(reply));
      });
    });
  }
}

function fleetOf(size: number) {
  const time = new ManualTime(1_000);
  const marks = new MemoryMarks(() => Math.floor(time.wallNow() * 1_000));
  return { time, marks, instances: Array.from({ length: size }, () => new Instance(time, marks)) };
}

const quietly = (promise: Promise<unknown>): void => void promise.catch(() => {});

describe('instances that block, unblock and reset whatever they like', () => {
  const KEYS = ['a', 'b'];
  const step = fc.record({
    who: fc.nat(2),
    what: fc.constantFrom('block', 'block', 'ladder', 'unblock', 'reset', 'nothing', 'failover'),
    key: fc.constantFrom(...KEYS),
    forMs: fc.constantFrom(300, 5_000, 100_000, Number.POSITIVE_INFINITY),
    said: fc.constantFrom<Fate>('answer', 'answer', 'answer', 'lose-reply'),
    asked: fc.constantFrom<Fate>('answer', 'answer', 'lose-reply', 'lose-call', 'reject'),
    delayMs: fc.constantFrom(1, 5, 30, 45),
    passes: fc.constantFrom(0, 0, 3, 40, 1_000, 3_000, 70_000),
  });

  it('agree with the store on who is blocked, once they have heard', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (steps) => {
        const { time, marks, instances } = fleetOf(3);
        await time.advance(20);
        for (const { who, what, key, forMs, said, asked, delayMs, passes } of steps) {
          const instance = instances[who] as Instance;
          Object.assign(instance, { said, asked: said === 'answer' ? asked : 'answer', delayMs });
          if (what === 'block') quietly(instance.block(key, forMs));
          else if (what === 'ladder') quietly(instance.block(key, [300, 5_000, 50_000]));
          else if (what === 'unblock') quietly(instance.unblock(key));
          else if (what === 'reset') quietly(instance.reset(key));
          else if (what === 'failover') {
            // With all its data, under another identity. Who can't ask then keeps what it knows to its end.
            for (const other of instances) other.asked = 'answer';
            await time.advance(2 * EVERY_MS);
            marks.failover(marks.snapshot());
            await time.advance(2 * EVERY_MS);
          }
          // Whose call was not answered has to hear what came of it, before the store may forget that.
          await time.advance(said === 'answer' ? passes : 2 * EVERY_MS);
        }
        for (const instance of instances) Object.assign(instance, { asked: 'answer', delayMs: 5 });
        await time.advance(3 * EVERY_MS);
        const { now, marks: told } = await marks.feed('', 0, false);
        for (const key of KEYS) {
          const until = told.find((mark) => mark.key === key)?.until ?? 0;
          // On the edge each may be early or late by a round trip.
          if (Math.abs(until - now) < 150_000) continue;
          for (const instance of instances) expect(instance.blocked(key), key).toBe(until > now);
        }
        for (const { desk } of instances) desk.close();
        // What is still on the wire.
        await time.advance(20);
        expect(time.pending).toBe(0);
      }),
      { numRuns: 200 },
    );
  }, 60_000);

  it('hear of each reset exactly once, and never of their own', async () => {
    const { time, instances } = fleetOf(3);
    const [a, b, c] = instances as [Instance, Instance, Instance];
    await time.advance(20);
    void a.reset('k');
    await time.advance(20);
    // Before it has heard of the first: what it says itself must not hide that.
    void b.block('k', 5_000);
    await time.advance(3 * EVERY_MS);
    expect([a.cleared, b.cleared, c.cleared]).toEqual([['k'], ['k'], ['k']]);
    void c.reset('k');
    await time.advance(3 * EVERY_MS);
    expect([a.cleared, b.cleared, c.cleared]).toEqual([
      ['k', 'k'],
      ['k', 'k'],
      ['k', 'k'],
    ]);
    for (const { desk } of instances) desk.close();
  });

  it('hear of a reset no second time, where somebody says something else about the key', async () => {
    const { time, instances } = fleetOf(3);
    const [a, b, c] = instances as [Instance, Instance, Instance];
    await time.advance(20);
    void a.reset('k');
    await time.advance(20);
    void b.block('k', 5_000);
    await time.advance(20);
    void c.unblock('k');
    await time.advance(3 * EVERY_MS);
    expect([a.cleared, b.cleared, c.cleared]).toEqual([['k'], ['k'], ['k']]);
    for (const { desk } of instances) desk.close();
  });
});

describe('what arrives out of order', () => {
  it('does not undo what was said later: a block on its way is lifted at once, and stays so', async () => {
    const { time, instances } = fleetOf(1);
    const [a] = instances as [Instance];
    await time.advance(20);
    void a.block('k', 5_000);
    await time.advance(3);
    void a.unblock('k');
    for (let ms = 0; ms < 20; ms++) {
      expect(a.blocked('k')).toBe(false);
      await time.advance(1);
    }
    a.desk.close();
  });

  it('does not undo what is known to be later: an answer about the past', async () => {
    const { time, instances } = fleetOf(2);
    const [a, b] = instances as [Instance, Instance];
    await time.advance(20);
    b.delayMs = 45;
    void a.block('k', 5_000);
    // The question is executed before the unblock, and its answer comes after that of the unblock.
    await time.advance(EVERY_MS);
    b.delayMs = 1;
    await time.advance(50);
    void b.unblock('k');
    for (let ms = 0; ms < 60; ms++) {
      await time.advance(1);
      expect(b.blocked('k')).toBe(false);
    }
    for (const { desk } of instances) desk.close();
  });
});

describe('an instance that could not ask for long', () => {
  it('learns what has been lifted meanwhile, though the store has forgotten that', async () => {
    const { time, marks, instances } = fleetOf(2);
    const [a, b] = instances as [Instance, Instance];
    await time.advance(20);
    void a.block('k', Number.POSITIVE_INFINITY);
    await time.advance(2 * EVERY_MS);
    expect(b.blocked('k')).toBe(true);
    b.ready = false;
    void a.unblock('k');
    await time.advance(120_000);
    expect(marks.size).toBe(0);
    expect(b.blocked('k')).toBe(true);
    b.ready = true;
    await time.advance(2 * EVERY_MS);
    expect(b.blocked('k')).toBe(false);
    for (const { desk } of instances) desk.close();
  });
});

describe('what a desk remembers', () => {
  it('goes when a block is over, without a timer for each', async () => {
    const { time, instances } = fleetOf(1);
    const [a] = instances as [Instance];
    await time.advance(20);
    for (let i = 0; i < 1_000; i++) void a.block(`k${i}`, 5_000);
    await time.advance(20);
    expect(a.marked.blocked('api')).toBe(1_000);
    expect(time.pending).toBeLessThan(5);
    await time.advance(10_000);
    expect(a.marked.blocked('api')).toBe(0);
    expect(a.marked.of('api').size).toBe(0);
    a.desk.close();
    expect(time.pending).toBe(0);
  });
});
