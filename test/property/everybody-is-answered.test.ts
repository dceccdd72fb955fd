import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import type { Limiter } from '../../src/limiter/limiter.js';
import type { PolicyDocument } from '../../src/policy/policy.js';
import { ManualTime, memoryPolicySource } from '../../src/testing.js';
import type { Milliseconds } from '../../src/units.js';
import { acquireAll } from '../../src/verb/several.js';
import { Chance } from '../support/fleet/chance.js';
import { closed } from '../support/limiter-under-test.js';
import { type Fate, RemoteCeiling } from '../support/remote-ceiling.js';

/** Random histories; HEADGATE_SEARCH_RUNS=2000 for a night's search. */
const RUNS = Number(process.env['HEADGATE_SEARCH_RUNS'] ?? 40);
const DEADLINE_MS: Milliseconds = 120;
const LONGEST_WAIT_MS: Milliseconds = 500;
/** A paced caller may stand behind this many others. */
const LONGEST_PACE_MS: Milliseconds = 4_000;

const FATES: readonly Fate[] = ['answer', 'answer', 'answer', 'lose-reply', 'lose-call', 'reject'];
const DELAYS: readonly Milliseconds[] = [1, 1, 5, 30, 59, 61, 100];
const VERBS = ['acquire', 'acquireAll', 'pace', 'enter', 'block', 'reset'] as const;

interface Step {
  readonly afterMs: Milliseconds;
  readonly verb: (typeof VERBS)[number] | 'trouble' | 'publish';
  readonly instance: number;
  readonly key: string;
  readonly maxWaitMs: Milliseconds | undefined;
  readonly fate: Fate;
  readonly delayMs: Milliseconds;
  readonly ready: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  afterMs: fc.constantFrom(0, 0, 1, 2, 7, 40),
  verb: fc.oneof(
    { weight: 10, arbitrary: fc.constantFrom(...VERBS.slice(0, 4)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(...VERBS.slice(4), 'trouble' as const, 'trouble' as const, 'publish' as const),
    },
  ),
  instance: fc.nat(2),
  key: fc.constantFrom('a', 'b', 'c'),
  maxWaitMs: fc.option(fc.constantFrom(0, 30, LONGEST_WAIT_MS), { nil: undefined }),
  fate: fc.constantFrom(...FATES),
  delayMs: fc.constantFrom(...DELAYS),
  ready: fc.boolean(),
});

/** One call of a caller that will not go away by itself. */
async function ask(limiter: Limiter, { verb, key, maxWaitMs }: Step): Promise<{ allowed: boolean } | undefined> {
  const options = maxWaitMs === undefined ? {} : { maxWaitMs };
  switch (verb) {
    case 'acquire':
      return limiter.policy('all').acquire(key, options);
    case 'acquireAll':
      return acquireAll(
        limiter,
        [
          { policy: 'client', key },
          { policy: 'all', key: 'everyone' },
        ],
        options,
      );
    case 'pace':
      return limiter.policy('paced').acquire(key, options);
    case 'enter': {
      const seat = await limiter.policy('seats').enter(key, options);
      seat.release();
      return seat;
    }
    case 'block':
      await limiter.policy('all').block(key, 20);
      return undefined;
    case 'reset':
      await limiter.policy('all').reset(key);
      return undefined;
    default:
      throw new Error(verb);
  }
}

function documents(rate: number, version: number): PolicyDocument[] {
  return [
    { name: 'client', version, ceiling: { rate: rate / 4, burst: 5 }, lease: { durationMs: 500 } },
    {
      name: 'all',
      version,
      local: { rate: rate * 2, burst: 20 },
      ceiling: { rate, burst: 10 },
      lease: { durationMs: 500 },
    },
    { name: 'paced', version, ceiling: { algorithm: 'leaky-bucket', rate, queue: 20 } },
    { name: 'seats', version, concurrency: { limit: 2 } },
  ];
}

describe('whoever asks', () => {
  it('is answered in time, whatever the store does, comes back or not; and a limiter that is closed ends', async () => {
    const answers = { allowed: 0, denied: 0, failed: 0 };
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 50, maxLength: 200 }),
        fc.constantFrom<Fate>('answer', 'lose-call', 'reject'),
        fc.integer({ min: 1, max: 2 ** 31 - 1 }),
        async (steps, fateAtEnd, seed) => {
          const time = new ManualTime(1_000);
          const remote = new RemoteCeiling(time, 3).withMarks();
          const source = memoryPolicySource(documents(40, 1));
          const random = new Chance(seed).next;
          const options = {
            // In code as well: what seats are counted with is then there from the start.
            policies: documents(40, 1),
            policySource: source,
            telemetry: false,
            random,
            time,
            ceiling: remote,
            onTrouble: () => {},
          };
          const begun = Promise.all([0, 1, 2].map(() => createLimiter({ ...options, callDeadlineMs: DEADLINE_MS })));
          let made: Limiter[] | undefined;
          begun.then((limiters) => (made = limiters));
          // They load code, and ask which keys are blocked, before they begin.
          for (; made === undefined; await setImmediate()) await time.advance(1);
          const limiters = made;
          const waiting = new Set<string>();
          const asked = (what: string, answer: Promise<{ allowed: boolean } | undefined>): void => {
            waiting.add(what);
            const ended = (how: keyof typeof answers): void => {
              answers[how] += 1;
              waiting.delete(what);
            };
            answer.then(
              (decision) => ended(decision?.allowed === false ? 'denied' : 'allowed'),
              () => ended('failed'),
            );
          };
          let version = 1;
          for (const [i, step] of steps.entries()) {
            await time.advance(step.afterMs);
            if (step.verb === 'trouble')
              Object.assign(remote, { fate: step.fate, delayMs: step.delayMs, ready: step.ready });
            else if (step.verb === 'publish') {
              version += 1;
              for (const document of documents(step.ready ? 40 : 8, version))
                await source.publish(document, version - 1);
            } else asked(`${i}: ${JSON.stringify(step)}`, ask(limiters[step.instance] as Limiter, step));
          }
          Object.assign(remote, { fate: fateAtEnd, ready: true });
          await time.advance(LONGEST_WAIT_MS + LONGEST_PACE_MS + 10 * DEADLINE_MS);
          expect({ waiting: [...waiting] }).toEqual({ waiting: [] });
          await Promise.all(limiters.map((limiter) => closed(limiter, time)));
        },
      ),
      { numRuns: RUNS, endOnFailure: true },
    );
    // Histories in which nobody passes, or nobody fails to, would show little.
    const total = answers.allowed + answers.denied + answers.failed;
    expect(answers.allowed / total).toBeGreaterThan(0.1);
    expect(answers.denied / total).toBeGreaterThan(0.1);
  }, 120_000);
});
