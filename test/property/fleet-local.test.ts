import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import type { PolicyLimiter } from '../../src/limiter/policy-limiter.js';
import { MachineTime, TrueTime } from '../support/fleet/clocks.js';

/** A process of a fleet, from its start to its end. */
interface Process {
  readonly time: MachineTime;
  readonly api: PolicyLimiter;
  readonly from: number;
  until: number;
}

type Step =
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'attempt'; readonly who: number; readonly cost: number; readonly times: number }
  | { readonly kind: 'back'; readonly who: number; readonly ms: number }
  | { readonly kind: 'restart'; readonly who: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 300 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('attempt' as const),
      who: fc.nat(9),
      cost: fc.integer({ min: 1, max: 3 }),
      times: fc.integer({ min: 1, max: 40 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('back' as const),
      who: fc.nat(9),
      ms: fc.integer({ min: 1, max: 3_600_000 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const), who: fc.nat(9) }) },
);

describe('a fleet with local tiers alone', () => {
  it('admits at most N × (burst + rate·w), N counting every process that lived in the window, on any clocks', async () => {
    const runs = Number(process.env['HEADGATE_SEARCH_RUNS'] ?? 60);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 3, max: 50 }),
        fc.integer({ min: 1, max: 500 }),
        fc.array(fc.record({ origin: fc.nat(10 ** 9), wall: fc.integer({ min: -3_600_000, max: 3_600_000 }) }), {
          minLength: 10,
          maxLength: 10,
        }),
        fc.array(step, { maxLength: 60 }),
        async (size, burst, rate, clocks, steps) => {
          const truth = new TrueTime();
          const all: Process[] = [];
          const running: Process[] = [];
          const start = async (who: number): Promise<void> => {
            const { origin, wall } = clocks[who] ?? { origin: 0, wall: 0 };
            // Slow, not fast: a clock that runs 1 % fast earns 1 % more, as it says it does.
            const time = new MachineTime(truth, origin, -0.01 * (who / 10), wall);
            const limiter = await createLimiter({
              policies: [{ name: 'p', local: { rate, burst } }],
              time,
              telemetry: false,
            });
            running[who] = { time, api: limiter.policy('p'), from: truth.us, until: Number.POSITIVE_INFINITY };
            all.push(running[who] as Process);
          };
          for (let who = 0; who < size; who++) await start(who);
          const admitted: { at: number; cost: number }[] = [];
          for (const step of steps) {
            const who = step.kind === 'wait' ? 0 : step.who % size;
            const here = running[who] as Process;
            if (step.kind === 'wait') truth.us += step.ms * 1_000;
            else if (step.kind === 'back') here.time.slept(step.ms);
            else if (step.kind === 'restart') {
              here.until = truth.us;
              await start(who);
            } else {
              for (let i = 0; i < step.times; i++)
                if (here.api.tryAcquire('k', step.cost)) admitted.push({ at: truth.us, cost: step.cost });
            }
          }
          for (const [i, { at: from }] of admitted.entries()) {
            if (i > 0 && admitted[i - 1]?.at === from) continue;
            let sum = 0;
            for (const { at, cost } of admitted.slice(i)) {
              sum += cost;
              const alive = all.filter((one) => one.from <= at && one.until >= from).length;
              expect(sum).toBeLessThanOrEqual(alive * (burst + (rate * (at - from)) / 1e6) + 1e-6);
            }
          }
          expect(admitted.length > 0 || !steps.some(({ kind }) => kind === 'attempt')).toBe(true);
        },
      ),
      { numRuns: runs },
    );
  }, 60_000);
});
