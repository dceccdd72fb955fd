import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SeatCall, SeatReply, SeatStore } from '../../src/ceiling/seat-store.js';

/** A store to be held against the contract, and the power to let time pass for it. */
export interface SeatsUnderTest {
  store: SeatStore;
  /** Microseconds. The store's clock may be ahead of it by what the test itself takes. */
  pass(us: number): Promise<void>;
  close(): Promise<void>;
}

const SECOND = 1_000_000;
let serial = 0;

/** A call of a holder about a key of its own, unless told otherwise. */
export function seatCall(changes: Partial<SeatCall> = {}): SeatCall {
  serial += 1;
  return {
    policy: 'api',
    key: `key-${serial}`,
    version: 0,
    limit: 10,
    holder: `holder-${serial}-`.padEnd(16, '-'),
    seq: serial,
    held: 0,
    want: 0,
    lostAfter: 10 * SECOND,
    ...changes,
  };
}

/** What every store of seats does. */
export function describeSeatStore(name: string, open: () => Promise<SeatsUnderTest>): void {
  describe(`the seats of ${name}`, () => {
    let under: SeatsUnderTest;
    beforeAll(async () => {
      under = await open();
    });
    afterAll(() => under.close());

    /** Some holders of one key. */
    function holders(fixed: Partial<SeatCall> = {}) {
      const { key } = seatCall();
      return (holder: string) =>
        async (changes: Partial<SeatCall>): Promise<SeatReply> => {
          const { seq } = seatCall();
          const call = seatCall({ key, holder: holder.padEnd(16, '-'), seq, ...fixed, ...changes });
          return (await under.store.hold([call])[0]) as SeatReply;
        };
    }

    it('grants what is free, and no more than the limit over all holders', async () => {
      const of = holders();
      const [a, b] = [of('a'), of('b')];
      expect(await a({ want: 7 })).toMatchObject({ status: 'granted', granted: 7, taken: 7, most: 0 });
      expect(await b({ want: 7 })).toMatchObject({ granted: 3, taken: 10 });
      expect(await b({ held: 3, want: 1 })).toMatchObject({ granted: 0, taken: 10 });
    });

    it('takes what a holder says it holds for the truth: seats it has left are free at once', async () => {
      const of = holders();
      const [a, b] = [of('a'), of('b')];
      await a({ want: 10 });
      expect(await a({ held: 4 })).toMatchObject({ taken: 4 });
      expect(await b({ want: 6 })).toMatchObject({ granted: 6, taken: 10 });
      expect(await a({ held: 8 })).toMatchObject({ taken: 14 });
      expect(await b({ held: 6, want: 1 })).toMatchObject({ granted: 0 });
    });

    it('answers a repeated call as before, and changes nothing for an older one', async () => {
      const of = holders();
      const a = of('a');
      const first = seatCall().seq;
      expect(await a({ seq: first, want: 4 })).toMatchObject({ granted: 4 });
      expect(await a({ seq: first, want: 4 })).toMatchObject({ status: 'granted', granted: 4, taken: 4 });
      await a({ held: 2 });
      expect(await a({ seq: first, want: 4 })).toMatchObject({ status: 'stale', granted: 0, taken: 2 });
    });

    it('forgets a holder that is not heard of, and no other', async () => {
      const of = holders({ lostAfter: 2 * SECOND });
      const [dead, alive] = [of('dead'), of('alive')];
      await dead({ want: 6 });
      await alive({ want: 4 });
      await under.pass(1.2 * SECOND);
      expect(await alive({ held: 4, want: 6 })).toMatchObject({ granted: 0, taken: 10 });
      await under.pass(1.2 * SECOND);
      expect(await alive({ held: 4, want: 6 })).toMatchObject({ granted: 6, taken: 10 });
    });

    it('says how many seats are fair where more are wanted than there are, and grants a holder no more', async () => {
      const of = holders();
      const [a, b, c] = [of('a'), of('b'), of('c')];
      await a({ want: 10 });
      expect(await b({ want: 1 })).toMatchObject({ granted: 0, most: 9 });
      expect(await c({ want: 10 })).toMatchObject({ granted: 0, most: 5 });
      expect(await a({ held: 5 })).toMatchObject({ taken: 5 });
      expect(await c({ want: 10 })).toMatchObject({ granted: 5, most: 5 });
    });

    it('keeps to the newest limit, and of two under one version to the smaller', async () => {
      const of = holders();
      const [a, b] = [of('a'), of('b')];
      expect(await a({ version: 2, limit: 3, want: 5 })).toMatchObject({ granted: 3, version: 2 });
      expect(await b({ version: 1, limit: 10, want: 5 })).toMatchObject({ granted: 0, version: 2 });
      expect(await b({ version: 2, limit: 10, want: 5 })).toMatchObject({ granted: 0 });
      expect(await b({ version: 3, limit: 4, want: 5 })).toMatchObject({ granted: 1, version: 3 });
    });

    it('keeps keys and policies apart, whatever is in them (C125)', async () => {
      const call = (policy: string, key: string) => under.store.hold([seatCall({ policy, key, limit: 1, want: 1 })])[0];
      for (const [policy, key] of [
        ['one', 'a:b'],
        ['one', 'a'],
        ['one.a', 'b'],
        ['one', '}{'],
        ['one', 'v'],
      ] as const) {
        expect(await call(policy, key), `${policy} ${key}`).toMatchObject({ granted: 1 });
      }
    });

    it('answers many calls at once, each by itself', async () => {
      const calls = Array.from({ length: 200 }, (_, i) => seatCall({ want: (i % 12) + 1 }));
      const replies = await Promise.all(under.store.hold(calls));
      expect(replies.map(({ granted }) => granted)).toEqual(calls.map(({ want }) => Math.min(10, want)));
      expect(replies.map(({ seq }) => seq)).toEqual(calls.map(({ seq }) => seq));
    });
  });
}
