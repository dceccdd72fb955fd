import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaceCall, PaceReply, PaceStore } from '../../src/ceiling/pace-store.js';
import { MICRO } from '../../src/units.js';

export interface PaceStoreUnderTest {
  readonly store: PaceStore;
  close(): Promise<void>;
}

let serial = 0;

/** A call about a key of its own, unless told otherwise: one caller, one token a second, ten may wait. */
export function paceCall(changes: Partial<PaceCall> = {}): PaceCall {
  serial += 1;
  return {
    policy: 'api~pace',
    key: `key-${serial}`,
    version: 0,
    rateNum: 1,
    rateDen: 1,
    queue: 10 * MICRO,
    holder: `holder-${serial}-`.padEnd(16, '-'),
    seq: serial,
    costs: [MICRO],
    ...changes,
  };
}

/** What every {@link PaceStore} does. */
export function describePaceStore(name: string, open: () => Promise<PaceStoreUnderTest>): void {
  describe(`the pace store (${name})`, () => {
    let under: PaceStoreUnderTest;
    beforeAll(async () => {
      under = await open();
    });
    afterAll(() => under.close());

    async function send(call: PaceCall): Promise<PaceReply> {
      return (await under.store.pace([call])[0]) as PaceReply;
    }

    it('gives the first its slot at once, and the others theirs a cost apart, whoever asks', async () => {
      const first = paceCall({ costs: [MICRO, 2 * MICRO, MICRO] });
      const reply = await send(first);
      const [slot = 0] = reply.slots;
      expect(slot).toBe(reply.now);
      expect(reply.slots).toEqual([slot, slot + 1_000_000, slot + 3_000_000]);
      const other = await send(paceCall({ key: first.key }));
      expect(other.slots).toEqual([slot + 4_000_000]);
    });

    it('refuses whoever would wait behind more than the queue, and all after them', async () => {
      const call = paceCall({ queue: 2 * MICRO, costs: Array.from({ length: 5 }, () => MICRO) });
      const reply = await send(call);
      expect(reply.slots.length).toBe(3);
      expect(reply.behind).toBe(3_000_000);
      expect((await send(paceCall({ key: call.key, queue: 2 * MICRO }))).slots).toEqual([]);
      expect((await send(paceCall({ queue: 0, costs: [MICRO, MICRO] }))).slots.length).toBe(1);
    });

    it('answers a repeat with the same slots, and an older call with none', async () => {
      const call = paceCall({ costs: [MICRO, MICRO] });
      const first = await send(call);
      const again = await send(call);
      expect(again.slots).toEqual(first.slots);
      const newer = await send({ ...call, seq: call.seq + 1 });
      expect(newer.slots[0]).toBe((first.slots[1] ?? 0) + 1_000_000);
      expect(await send(call)).toMatchObject({ status: 'stale', slots: [] });
    });

    it('goes by the newest version, and under one by the slower rate and the shorter queue', async () => {
      const call = paceCall({ version: 1 });
      await send(call);
      const newer = await send({
        ...call,
        seq: call.seq + 1,
        version: 2,
        rateNum: 1,
        rateDen: 2,
        costs: [MICRO, MICRO],
      });
      const [a = 0, b = 0] = newer.slots;
      expect(b - a).toBe(2_000_000);
      const stale = await send({ ...call, seq: call.seq + 2, costs: [MICRO, MICRO] });
      expect(stale.version).toBe(2);
      expect((stale.slots[1] ?? 0) - (stale.slots[0] ?? 0)).toBe(2_000_000);
      const quick = { ...call, version: 2, rateNum: 5, rateDen: 1, seq: call.seq + 3, costs: [MICRO, MICRO] };
      const slots = (await send(quick)).slots;
      expect((slots[1] ?? 0) - (slots[0] ?? 0)).toBe(2_000_000);
    });

    it('answers many calls at once, each its own', async () => {
      const calls = Array.from({ length: 150 }, () => paceCall());
      const replies = await Promise.all(under.store.pace(calls));
      expect(replies.map(({ seq }) => seq)).toEqual(calls.map(({ seq }) => seq));
      expect(replies.every(({ slots, now }) => slots[0] === now)).toBe(true);
    });
  });
}
