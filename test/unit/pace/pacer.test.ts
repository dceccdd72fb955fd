import { describe, expect, it } from 'vitest';
import { MemoryPace } from '../../../src/ceiling/memory-pace.js';
import type { PaceCall, PaceReply } from '../../../src/ceiling/pace-store.js';
import { Pacer, type QueueFull, SLOT_LASTS_MS, type Slot } from '../../../src/pace/pacer.js';
import { ManualTime, storeClock } from '../../../src/testing.js';
import { MICRO } from '../../../src/units.js';

/** Ten a second; five may wait. */
const TERMS = { version: 1, rateNum: 10, rateDen: 1, queue: 5 * MICRO };

function fleet(size: number) {
  const time = new ManualTime();
  const store = new MemoryPace(storeClock(time));
  const pacers = Array.from(
    { length: size },
    (_, index) => new Pacer({ store, time, holder: `holder-${index}`, deadlineMs: 100 }),
  );
  return { time, store, pacers };
}

const ask = (pacer: Pacer | undefined, cost = 1) => (pacer as Pacer).reserve('api', 'k', TERMS, cost * MICRO);

describe('a pacer', () => {
  it('spaces the callers of a whole fleet evenly, and refuses who does not fit the queue', async () => {
    const { time, pacers } = fleet(3);
    const answers: Promise<Slot | QueueFull>[] = [];
    for (let i = 0; i < 9; i++) answers.push(ask(pacers[i % 3]));
    await time.advance(1);
    const slots = await Promise.all(answers);
    const given = slots.filter((slot) => slot.reserved).map(({ at }) => at);
    given.sort((a, b) => a - b);
    expect(given.length).toBe(6);
    for (const [index, at] of given.entries()) expect(at).toBeCloseTo((given[0] ?? 0) + index * 100, 6);
    const refused = slots.filter((slot) => !slot.reserved);
    expect(refused.map(({ retryAfterMs }) => retryAfterMs)).toEqual([100, 100, 100]);
    await time.advance(100);
    const again = ask(pacers[0]);
    await time.advance(1);
    expect((await again).reserved).toBe(true);
  });

  it('takes as long for a cost as it is large, and says until when a slot may be used', async () => {
    const { time, pacers } = fleet(1);
    const [large, small] = [ask(pacers[0], 3), ask(pacers[0])];
    await time.advance(1);
    const [a, b] = (await Promise.all([large, small])) as Slot[];
    expect((b?.at ?? 0) - (a?.at ?? 0)).toBe(300);
    expect((a?.until ?? 0) - (a?.at ?? 0)).toBe(SLOT_LASTS_MS);
  });

  it('makes one call a key and tick, one at a time, and is never early however late the answer', async () => {
    const time = new ManualTime();
    const inner = new MemoryPace(storeClock(time));
    const calls: PaceCall[] = [];
    const pacer = new Pacer({
      store: {
        pace: (asked) => {
          calls.push(...asked);
          const replies = inner.pace(asked);
          return replies.map(
            (reply) => new Promise<PaceReply>((answer) => void time.after(30, () => void reply.then(answer))),
          );
        },
      },
      time,
      holder: 'holder-0',
      deadlineMs: 100,
    });
    const start = time.now();
    const first = [ask(pacer), ask(pacer)];
    await time.advance(1);
    const late = ask(pacer);
    await time.advance(40);
    expect(calls.map(({ costs }) => costs.length)).toEqual([2, 1]);
    await time.advance(40);
    const [a, b, c] = (await Promise.all([...first, late])) as Slot[];
    expect(a?.at).toBeGreaterThanOrEqual(start + 30);
    expect((b?.at ?? 0) - (a?.at ?? 0)).toBe(100);
    expect((c?.at ?? 0) - (b?.at ?? 0)).toBeGreaterThanOrEqual(100);
  });

  it('fails its callers where the store does not answer in time, and goes on', async () => {
    const time = new ManualTime();
    const inner = new MemoryPace(storeClock(time));
    let silent = true;
    const store = {
      pace: (calls: readonly PaceCall[]) =>
        silent ? calls.map(() => new Promise<PaceReply>(() => {})) : inner.pace(calls),
    };
    const pacer = new Pacer({ store, time, holder: 'holder-0', deadlineMs: 100 });
    const failing = expect(ask(pacer)).rejects.toThrow('did not answer within 100 ms');
    await time.advance(101);
    await failing;
    silent = false;
    const answered = ask(pacer);
    await time.advance(1);
    expect((await answered).reserved).toBe(true);
    expect(time.pending).toBe(0);
  });
});
