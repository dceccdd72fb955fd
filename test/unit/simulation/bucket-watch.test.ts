import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BucketWatch } from '../../../src/simulation/bucket-watch.js';
import { EventQueue, NEVER } from '../../../src/simulation/event-queue.js';

const terms = (burst: number, perSecond: number) => ({ burst: burst * 1e6, rateNum: perSecond, rateDen: 1 });

describe('the watch over windows', () => {
  it('finds the worst of all windows, as looking at each of them does', () => {
    const admissions = fc.array(fc.record({ gap: fc.nat(500), cost: fc.integer({ min: 1, max: 5 }) }), {
      minLength: 1,
    });
    fc.assert(
      fc.property(admissions, (list) => {
        const watch = new BucketWatch('api', 'all', terms(10, 20));
        let now = 0;
        const times = list.map(({ gap, cost }) => {
          now += gap;
          watch.admit(cost, now);
          return { now, cost };
        });
        let worst = Number.NEGATIVE_INFINITY;
        for (const [from, first] of times.entries()) {
          let sum = 0;
          for (const { now, cost } of times.slice(from)) {
            sum += cost;
            worst = Math.max(worst, sum - 10 - ((now - first.now) * 20) / 1_000);
          }
        }
        expect(watch.worst).toBeCloseTo(worst, 9);
      }),
    );
  });

  it('holds windows that begin before a tightening to the old burst, and later ones to the new', () => {
    const watch = new BucketWatch('api', 'all', terms(10, 1));
    for (let i = 0; i < 10; i++) watch.admit(1, 0);
    expect(watch.over).toBe(0);
    watch.change(terms(2, 1), 0, false, 0);
    watch.admit(1, 0);
    expect(watch.over).toBe(1);
    watch.admit(2, 60_000);
    expect(watch.over).toBe(1);
    watch.admit(1, 60_000);
    expect(watch.over).toBe(2);
  });
});

describe('the event queue', () => {
  it('runs everything in order of time, and of arrival where times are the same', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20), { maxLength: 60 }), (times) => {
        const queue = new EventQueue();
        const ran: [number, number][] = [];
        for (const [id, at] of times.entries()) {
          let again = at + 7;
          const fire = (now: number): number => {
            ran.push([now, id]);
            const next = again;
            again = NEVER;
            return next;
          };
          queue.push(at, { quiet: true, fire });
        }
        while (queue.next < NEVER) queue.run();
        const expected = times
          .flatMap((at, id): [number, number][] => [
            [at, id],
            [at + 7, id],
          ])
          .sort((a, b) => a[0] - b[0]);
        expect(ran.map(([at]) => at)).toEqual(expected.map(([at]) => at));
        const firstTimes = ran.filter(([at, id]) => at === times[id]);
        for (const [i, [at, id]] of firstTimes.entries()) {
          const next = firstTimes[i + 1];
          if (next && next[0] === at) expect(next[1]).toBeGreaterThan(id);
        }
      }),
    );
  });
});
