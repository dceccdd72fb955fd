import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  FOREVER,
  MARKS_A_PAGE,
  type Mark,
  type MarkCall,
  type MarkFeed,
  type MarkStore,
} from '../../src/ceiling/mark-store.js';

/** A store to be held against the contract, and the power to let time pass for it. */
export interface MarksUnderTest {
  store: MarkStore;
  /** Microseconds. The store's clock may be ahead of it by what the test itself takes. */
  pass(us: number): Promise<void>;
  lose(): Promise<void>;
  close(): Promise<void>;
}

const MINUTE = 60_000_000;
/** What a real server's clock may have moved on between two calls. */
const SLACK = 2_000_000;
let serial = 0;

function newKey(): string {
  serial += 1;
  return `key-${serial}`;
}

export function blockOf(key: string, steps: readonly number[], forgetAfter = 0): MarkCall {
  return { kind: 'block', policy: 'api', key, steps, forgetAfter };
}

/** What every store of marks does. */
export function describeMarkStore(name: string, open: () => Promise<MarksUnderTest>): void {
  describe(`the marks of ${name}`, () => {
    let under: MarksUnderTest;
    beforeAll(async () => {
      under = await open();
    });
    afterAll(() => under.close());

    /** How long a key is blocked for from now, as the store answers a call. */
    async function setFor(call: MarkCall): Promise<{ left: number; step: number }> {
      const { now, mark } = await under.store.mark(call);
      return { left: Math.max(0, mark.until - now), step: mark.step };
    }

    /** All that a reader who knows nothing is told. */
    async function readAll(): Promise<{ feed: MarkFeed; marks: Map<string, Mark> }> {
      const marks = new Map<string, Mark>();
      let feed = await under.store.feed('', 0, false);
      expect(feed.fresh).toBe(true);
      for (;;) {
        for (const mark of feed.marks) marks.set(`${mark.policy}:${mark.key}`, mark);
        if (!feed.more) return { feed, marks };
        feed = await under.store.feed(feed.era, feed.seq, true);
        expect(feed.fresh).toBe(false);
      }
    }

    it('blocks a key for as long as is said, or for ever, and lifts it', async () => {
      const key = newKey();
      expect(await setFor(blockOf(key, [MINUTE]))).toEqual({ left: MINUTE, step: 0 });
      expect((await under.store.mark(blockOf(key, [FOREVER]))).mark.until).toBe(FOREVER);
      expect((await under.store.mark({ kind: 'unblock', policy: 'api', key })).mark.until).toBe(0);
    });

    it('never shortens a block that is under way', async () => {
      const key = newKey();
      await setFor(blockOf(key, [10 * MINUTE]));
      const { left } = await setFor(blockOf(key, [MINUTE]));
      expect(left).toBeLessThanOrEqual(10 * MINUTE);
      expect(left).toBeGreaterThan(10 * MINUTE - SLACK);
    });

    it('climbs one step with each block of a key that is not blocked, and stays on the last', async () => {
      const key = newKey();
      const ladder = blockOf(key, [MINUTE, 5 * MINUTE, 60 * MINUTE], 60 * MINUTE);
      expect(await setFor(ladder)).toEqual({ left: MINUTE, step: 1 });
      // While it holds, one more does not climb: two instances that block at once mean one and the same thing.
      expect(await setFor(ladder)).toMatchObject({ step: 1 });
      await under.pass(2 * MINUTE);
      expect(await setFor(ladder)).toEqual({ left: 5 * MINUTE, step: 2 });
      await under.pass(6 * MINUTE);
      expect(await setFor(ladder)).toEqual({ left: 60 * MINUTE, step: 3 });
      await under.pass(61 * MINUTE);
      expect(await setFor(ladder)).toEqual({ left: 60 * MINUTE, step: 3 });
    });

    it('forgets a ladder some time after its last block, and not before', async () => {
      const key = newKey();
      const ladder = blockOf(key, [MINUTE, 5 * MINUTE], 10 * MINUTE);
      await setFor(ladder);
      await under.pass(10 * MINUTE);
      expect(await setFor(ladder)).toMatchObject({ step: 2 });
      await under.pass(16 * MINUTE);
      expect(await setFor(ladder)).toMatchObject({ step: 1 });
    });

    it('keeps the place on the ladder through an unblock, and not through a reset', async () => {
      const key = newKey();
      const ladder = blockOf(key, [MINUTE, 5 * MINUTE], 10 * MINUTE);
      await setFor(ladder);
      await under.store.mark({ kind: 'unblock', policy: 'api', key });
      expect(await setFor(ladder)).toMatchObject({ step: 2 });
      const { mark } = await under.store.mark({ kind: 'reset', policy: 'api', key });
      expect(mark).toMatchObject({ until: 0, step: 0, reset: mark.seq });
      expect(await setFor(ladder)).toMatchObject({ step: 1 });
    });

    it('leaves the ladder as it is where a block is on none', async () => {
      const key = newKey();
      const ladder = blockOf(key, [MINUTE, 5 * MINUTE], 10 * MINUTE);
      await setFor(ladder);
      await under.pass(2 * MINUTE);
      expect(await setFor(blockOf(key, [2 * MINUTE]))).toEqual({ left: 2 * MINUTE, step: 1 });
      expect(await setFor(ladder)).toMatchObject({ step: 1 });
      await under.pass(3 * MINUTE);
      expect(await setFor(ladder)).toEqual({ left: 5 * MINUTE, step: 2 });
    });

    it('tells whoever asks what has changed since, the last of each key only', async () => {
      const [a, b] = [newKey(), newKey()];
      const { feed } = await readAll();
      await under.store.mark(blockOf(a, [MINUTE]));
      await under.store.mark(blockOf(b, [MINUTE]));
      const { mark } = await under.store.mark({ kind: 'unblock', policy: 'api', key: a });

      const news = await under.store.feed(feed.era, feed.seq, false);
      expect(news).toMatchObject({ era: feed.era, fresh: false, more: false, seq: mark.seq });
      expect(news.marks.map(({ key, until }) => [key, until > news.now])).toEqual([
        [b, true],
        [a, false],
      ]);
      expect(await under.store.feed(news.era, news.seq, false)).toMatchObject({
        fresh: false,
        marks: [],
        seq: news.seq,
      });
    });

    it('tells all there is to whoever is new, in pages, also while marks are made', async () => {
      const keys = Array.from({ length: MARKS_A_PAGE + 40 }, newKey);
      for (const key of keys) await under.store.mark(blockOf(key, [10 * MINUTE]));
      const first = await under.store.feed('', 0, false);
      expect(first).toMatchObject({ fresh: true, more: true });
      expect(first.marks).toHaveLength(MARKS_A_PAGE);
      // One of the first page moves to the end, and one that would have come is gone.
      const [moved, lifted] = [first.marks[0]?.key as string, keys.at(-1) as string];
      await under.store.mark(blockOf(moved, [20 * MINUTE]));
      await under.store.mark({ kind: 'unblock', policy: 'api', key: lifted });
      const { marks } = await readAll();
      for (const key of keys) {
        const { until = 0 } = marks.get(`api:${key}`) ?? {};
        expect(until > first.now, key).toBe(key !== lifted);
      }
    });

    it('says that nothing can be told where what the reader missed is gone', async () => {
      const key = newKey();
      const { feed } = await readAll();
      await under.store.mark(blockOf(key, [MINUTE]));
      await under.store.mark({ kind: 'unblock', policy: 'api', key });
      expect(await under.store.feed(feed.era, feed.seq, false)).toMatchObject({ fresh: false });
      await under.pass(2 * MINUTE);
      const late = await under.store.feed(feed.era, feed.seq, false);
      expect(late).toMatchObject({ era: feed.era, fresh: true });
      expect(late.marks.map(({ key }) => key)).not.toContain(key);
    });

    it('keeps keys and policies apart, whatever is in them (C125)', async () => {
      for (const [policy, key] of [
        ['one', 'a:b'],
        ['one', 'a'],
        ['one.a', 'b'],
        ['one', '}{ @\n'],
        ['one', '@'],
      ] as const) {
        const { mark } = await under.store.mark({ kind: 'block', policy, key, steps: [MINUTE], forgetAfter: 0 });
        expect(mark).toMatchObject({ policy, key });
        const { marks } = await readAll();
        expect(marks.get(`${policy}:${key}`)).toEqual(mark);
      }
    });

    it('is of another era once its data is lost', async () => {
      const { feed } = await readAll();
      await under.lose();
      const news = await under.store.feed(feed.era, feed.seq, false);
      expect(news).toMatchObject({ fresh: true, marks: [], seq: 0, born: 0 });
      expect(news.era).not.toBe(feed.era);
      expect(await under.store.feed(news.era, news.seq, false)).toMatchObject({ era: news.era, fresh: false });
    });
  });
}
