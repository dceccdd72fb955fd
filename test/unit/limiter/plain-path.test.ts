import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PolicyDocument } from '../../../src/policy/policy.js';
import { silentObserver } from '../../../src/telemetry/observer.js';
import { limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';

const step = fc.record({
  verb: fc.constantFrom('tryAcquire', 'decide', 'acquire', 'wait'),
  cost: fc.integer({ min: 1, max: 4 }),
  times: fc.integer({ min: 1, max: 6 }),
  pause: fc.constantFrom(0, 0, 0, 1, 7, 40, 250, 600, 1_900, 20_000),
  away: fc.boolean(),
  held: fc.boolean(),
});

const local = fc.record({ rate: fc.integer({ min: 1, max: 60 }), burst: fc.integer({ min: 4, max: 20 }) });
const policies: fc.Arbitrary<Omit<PolicyDocument, 'name'>> = fc.record(
  {
    local,
    ceiling: local,
    mode: fc.constantFrom('enforce', 'shadow', 'allow', 'deny'),
    outage: fc.record({ mode: fc.constantFrom('deny', 'allow', 'share'), fleet: fc.constant(2) }),
    lease: fc.record({ durationMs: fc.constantFrom(400, 2_000) }),
  },
  { requiredKeys: [] },
);

/** A key with terms of its own is always looked at closely, also where they are the policy's. */
function withOverride(policy: Omit<PolicyDocument, 'name'>): Omit<PolicyDocument, 'name'> {
  const { local, ceiling, mode } = policy;
  return {
    ...policy,
    overrides: { k: { ...(local && { local }), ...(ceiling && { ceiling }), ...(mode && { mode }) } },
  };
}

describe('the plain path', () => {
  it('answers and counts as the judge and the clerk do, on any history', async () => {
    await fc.assert(
      fc.asyncProperty(policies, fc.boolean(), fc.array(step, { maxLength: 20 }), async (policy, remote, steps) => {
        if (!policy.local && !policy.ceiling) return;
        const make = remote ? remoteLimiterOf : limiterOf;
        const [plain, close] = [await make(policy), await make(withOverride(policy))];
        const pair = [plain, close].map(({ api }) => ({ api, handle: api.key('k') }));
        for (const { verb, cost, times, pause, away, held } of steps) {
          for (const one of [plain, close]) if ('remote' in one) (one.remote as { ready: boolean }).ready = !away;
          for (let i = 0; i < times; i++) {
            if (verb === 'acquire' || verb === 'wait') {
              const options = { cost, ...(verb === 'wait' && { maxWaitMs: 100 }) };
              const given = verb === 'acquire' && cost === 1 ? undefined : options;
              const answers = pair.map(({ api, handle }) => (held ? handle.acquire(given) : api.acquire('k', given)));
              if (i % 2 === 0) await Promise.all([plain.time.advance(120), close.time.advance(120)]);
              const [a, b] = await Promise.all(answers.map(soFar));
              expect(a).toEqual(b);
            } else {
              const [a, b] = pair.map(({ api, handle }) => (held ? handle[verb](cost) : api[verb]('k', cost)));
              expect(a).toEqual(b);
            }
          }
          await Promise.all([plain.time.advance(pause), close.time.advance(pause)]);
          expect(plain.limiter.stats()).toEqual(close.limiter.stats());
        }
      }),
      { numRuns: 300 },
    );
  }, 30_000);

  it('leaves a denial that somebody watches to the clerk, who shows it', async () => {
    const seen: string[] = [];
    const observer = {
      ...silentObserver,
      watchesDenials: () => true,
      denied: ({ reason }: { reason: string }) => seen.push(reason),
    };
    const { api } = await limiterOf({ local: { rate: 1, burst: 1 } }, { observer });
    for (let i = 0; i < 3; i++) api.tryAcquire('k');
    expect(seen).toEqual(['empty', 'empty']);
  });
});
