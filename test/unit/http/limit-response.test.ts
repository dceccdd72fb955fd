import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type HeaderDialect,
  headersFor,
  type ResponseOptions,
  type Ruling,
  responseTo,
} from '../../../src/http/index.js';
import type { Decision, DenialReason, Limiter } from '../../../src/index.js';
import { memoryPolicySource } from '../../../src/testing.js';
import { limiterOf, remoteLimiterOf } from '../../support/limiter-under-test.js';
import { dictionaryOf, limiterWith, membersOf, rule } from './ruled.js';

const NOW = 1_700_000_000_000;
const surroundings = { wallNow: NOW, random: () => 0.5 };

/** One request under `names`: the answer if it is denied, else the fields it gets. */
function ask(limiter: Limiter, names: readonly string[], options: ResponseOptions = {}, cost = 1) {
  const rulings = rule(limiter, names, 'caller', cost);
  const response = responseTo(rulings, options, surroundings);
  const headers = response?.headers ?? headersFor(rulings, options, NOW);
  return { rulings, response, headers, problem: response && JSON.parse(response.body) };
}

function drain(limiter: Limiter, name: string): void {
  while (limiter.policy(name).tryAcquire('caller'));
}

describe('the answer to a denied request', () => {
  it('has Retry-After in whole seconds, rounded up, and never the whole period (C109, C110)', async () => {
    const { limiter, time } = await limiterWith(
      { name: 'minute', local: { rate: 5, burst: 5, per: '1m' } },
      { name: 'twenty', local: { rate: 2, burst: 2, per: '20s' } },
    );
    drain(limiter, 'minute');
    drain(limiter, 'twenty');
    expect(ask(limiter, ['minute']).headers['Retry-After']).toBe('12');

    await time.advance(9_200);
    const { headers, problem } = ask(limiter, ['twenty']);
    expect(headers['Retry-After']).toBe('1');
    expect(problem.detail).toContain('Retry in 1 second.');
    for (let i = 0; i < 20; i++) {
      await time.advance(39);
      const { rulings, headers } = ask(limiter, ['twenty']);
      const [{ decision }] = rulings as readonly [Ruling];
      if (decision.allowed) break;
      expect(headers['Retry-After']).toBe(String(Math.ceil((decision.retryAfterMs as number) / 1_000)));
    }
  });

  it('is a problem with the type, the status and the names of the policies that denied', async () => {
    const { limiter } = await limiterWith({ name: 'api', local: { rate: 1, burst: 3, per: '10s' } });
    drain(limiter, 'api');
    expect(ask(limiter, ['api']).response).toMatchObject({ status: 429 });
    expect(ask(limiter, ['api']).headers).toMatchObject({
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
    });
    expect(ask(limiter, ['api']).problem).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Request cannot be satisfied as assigned quota has been exceeded',
      status: 429,
      detail: 'The quota "api" is used up. Retry in 10 seconds.',
      'violated-policies': ['api'],
    });
  });

  it('is 503 where the fleet is degraded and denies, with a time to come back', async () => {
    const { limiter, api, remote, time } = await remoteLimiterOf({ name: 'api', ceiling: { rate: 10, burst: 10 } });
    remote.ready = false;
    const call = api.acquire('caller');
    await time.advance(200);
    expect(await call).toMatchObject({ allowed: false, reason: 'degraded' });
    const { response, problem } = ask(limiter, ['api']);
    expect(response?.status).toBe(503);
    expect(problem).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      status: 503,
      'violated-policies': ['api'],
    });
    expect(response?.headers['Retry-After']).toMatch(/^[1-9]\d*$/);
  });

  it.each<[DenialReason, number, string]>([
    ['empty', 429, '#quota-exceeded'],
    ['queue-full', 429, '#quota-exceeded'],
    ['blocked', 429, '#quota-exceeded'],
    ['overflow', 503, '#temporary-reduced-capacity'],
    ['cold', 503, '#temporary-reduced-capacity'],
    ['expired', 503, '#temporary-reduced-capacity'],
    ['closed', 503, '#temporary-reduced-capacity'],
    ['cost-above-burst', 403, 'about:blank'],
    ['denied-by-policy', 403, 'about:blank'],
  ])('is for the reason %s a %i of the type %s', async (reason, status, type) => {
    const { limiter } = await limiterWith({ name: 'api', local: { rate: 1, burst: 3 } });
    const [ruling] = rule(limiter, ['api']) as [ReturnType<typeof rule>[number]];
    const denied = { ...ruling.decision, allowed: false as const, limitedBy: 'local' as const, reason };
    const response = responseTo(
      [{ ...ruling, decision: { ...denied, retryAfterMs: undefined } as Decision }],
      {},
      surroundings,
    );
    expect(response?.status).toBe(status);
    expect(JSON.parse(response?.body as string).type).toContain(type);
    expect(response?.headers).not.toHaveProperty('Retry-After');
  });

  it('has no Retry-After where no waiting helps, and the truth or a clamp where it does (C119)', async () => {
    const { limiter } = await limiterWith(
      { name: 'daily', local: { rate: 1, burst: 1, per: '1d' } },
      { name: 'blocked', local: { rate: 1, burst: 1 }, mode: 'deny' },
    );
    drain(limiter, 'daily');
    expect(ask(limiter, ['daily']).headers['Retry-After']).toBe('86400');
    const clamped = ask(limiter, ['daily'], { maxRetryAfterSeconds: 3_600 });
    expect(clamped.headers['Retry-After']).toBe('3600');
    expect(clamped.problem.detail).toContain('Retry in 3600 seconds.');
    expect(ask(limiter, ['blocked']).headers).not.toHaveProperty('Retry-After');
    expect(ask(limiter, ['daily', 'blocked']).headers).not.toHaveProperty('Retry-After');
  });

  it('names every policy that denied and waits for the slowest of them: after that it is allowed (C116)', async () => {
    const { limiter, time } = await limiterWith(
      { name: 'second', local: { rate: 5, burst: 5 } },
      { name: 'day', local: { rate: 100, burst: 100, per: '1d' } },
      { name: 'other', local: { rate: 100, burst: 100 } },
    );
    drain(limiter, 'second');
    drain(limiter, 'day');
    const { headers, problem } = ask(limiter, ['second', 'day', 'other']);
    expect(problem['violated-policies']).toEqual(['second', 'day']);
    expect(headers['Retry-After']).toBe('864');
    await time.advance(864_000);
    expect(ask(limiter, ['second', 'day', 'other']).response).toBeUndefined();
  });

  it('has a truthful Retry-After after the limit was lowered below what is spent (C115)', async () => {
    const { limiter, time } = await limiterOf(
      { local: { rate: 100, burst: 100, per: '1h' }, inheritance: 'additive' },
      { policySource: memoryPolicySource() },
    );
    for (let i = 0; i < 50; i++) limiter.policy('api').tryAcquire('caller');
    await limiter.policies.publish({
      name: 'api',
      local: { rate: 10, burst: 10, per: '1h' },
      inheritance: 'additive',
    });
    const { headers } = ask(limiter, ['api']);
    // Fifty spent of a limit that is now ten: forty below zero, and one more to earn.
    expect(headers['Retry-After']).toBe(String((41 * 3_600) / 10));
    await time.advance(Number(headers['Retry-After']) * 1_000);
    expect(ask(limiter, ['api']).response).toBeUndefined();
  });

  it('comes later by at most the jitter, never earlier', async () => {
    const { limiter } = await limiterWith({ name: 'api', local: { rate: 1, burst: 1, per: '10s' } });
    drain(limiter, 'api');
    const rulings = rule(limiter, ['api']);
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (chance) => {
        const response = responseTo(rulings, { jitterMs: 5_000 }, { wallNow: NOW, random: () => chance });
        const seconds = Number(response?.headers['Retry-After']);
        expect(seconds).toBe(Math.ceil(10 + chance * 5));
        // The quota's own time stays as it is: Retry-After is never the earlier of the two.
        expect(membersOf(response?.headers['RateLimit'])).toEqual({ api: { r: 0, t: 10 } });
      }),
    );
  });
});

describe('header fields', () => {
  it('list every policy with its own numbers, under its own name (C113)', async () => {
    const { limiter } = await limiterWith(
      { name: 'sec', local: { rate: 10, burst: 10 } },
      { name: 'day', local: { rate: 1_000, burst: 1_000, per: '1d' } },
    );
    const { headers } = ask(limiter, ['sec', 'day']);
    expect(headers['RateLimit-Policy']).toBe('"sec";q=10;w=1, "day";q=1000;w=86400');
    expect(membersOf(headers['RateLimit-Policy'])).toEqual({ sec: { q: 10, w: 1 }, day: { q: 1_000, w: 86_400 } });
    expect(membersOf(headers['RateLimit'])).toEqual({ sec: { r: 9, t: 1 }, day: { r: 999, t: 86_314 } });
    expect(ask(limiter, ['sec', 'day'], { headers: 'legacy' }).headers).toMatchObject({
      'X-RateLimit-Limit': '10',
      'X-RateLimit-Remaining': '8',
    });
  });

  it('say after a denial only what denied, and nothing that ends after Retry-After', async () => {
    const { limiter } = await limiterWith(
      { name: 'sec', local: { rate: 4, burst: 4 } },
      { name: 'day', local: { rate: 1_000, burst: 1_000, per: '1d' } },
    );
    drain(limiter, 'sec');
    const { headers } = ask(limiter, ['sec', 'day']);
    expect(membersOf(headers['RateLimit-Policy'])).toHaveProperty('day');
    expect(membersOf(headers['RateLimit'])).toEqual({ sec: { r: 0, t: 1 } });
  });

  it('know the time until all is there from the time to the next token (C118)', async () => {
    const { limiter } = await limiterWith({ name: 'api', local: { rate: 30, burst: 16, per: '60s' } });
    const resets: unknown[] = [];
    for (let i = 1; i <= 16; i++) {
      const { headers } = ask(limiter, ['api'], { headers: 'draft-7' });
      if ([1, 5, 16].includes(i)) resets.push(dictionaryOf(headers['RateLimit']));
    }
    expect(resets).toEqual([
      { limit: 16, remaining: 15, reset: 2 },
      { limit: 16, remaining: 11, reset: 10 },
      { limit: 16, remaining: 0, reset: 32 },
    ]);
    expect(ask(limiter, ['api'], { headers: 'draft-7' }).headers).toMatchObject({ 'Retry-After': '2' });
  });

  it('are in each dialect what its readers expect', async () => {
    const { limiter } = await limiterWith({ name: 'api', local: { rate: 30, burst: 16, per: '60s' } });
    const fields = (headers: HeaderDialect | HeaderDialect[]) => ask(limiter, ['api'], { headers }, 1).headers;
    expect(fields('draft-10')).toEqual({ 'RateLimit-Policy': '"api";q=16;w=32', RateLimit: '"api";r=15;t=30' });
    expect(fields('draft-12')).toEqual({ 'RateLimit-Policy': '"api";q=16;w=32', RateLimit: '"api";a=14;w=28;c=1' });
    expect(fields('draft-8')).toEqual({ 'RateLimit-Policy': '"api"; q=16; w=32', RateLimit: '"api"; r=13; t=6' });
    expect(fields('draft-7')).toEqual({ 'RateLimit-Policy': '16;w=32', RateLimit: 'limit=16, remaining=12, reset=8' });
    expect(fields('draft-6')).toEqual({
      'RateLimit-Policy': '16;w=32',
      'RateLimit-Limit': '16',
      'RateLimit-Remaining': '11',
      'RateLimit-Reset': '10',
    });
    expect(fields(['draft-10', 'legacy'])).toEqual({
      'RateLimit-Policy': '"api";q=16;w=32',
      RateLimit: '"api";r=10;t=20',
      'X-RateLimit-Limit': '16',
      'X-RateLimit-Remaining': '10',
      'X-RateLimit-Reset': String(NOW / 1_000 + 12),
    });
    expect(fields([])).toEqual({});
  });

  it('tell a window of any algorithm as its limit in its length', async () => {
    const { limiter } = await limiterWith(
      { name: 'fixed', ceiling: { algorithm: 'fixed-window', limit: 100, window: '1m' } },
      { name: 'daily', ceiling: { algorithm: 'fixed-window', limit: 1_000, window: 'day' } },
      { name: 'log', ceiling: { algorithm: 'sliding-window-log', limit: 5, window: '10s' } },
      { name: 'counter', ceiling: { algorithm: 'sliding-window-counter', limit: 50, window: '1h' } },
    );
    const { headers } = ask(limiter, ['fixed', 'daily', 'log', 'counter']);
    expect(membersOf(headers['RateLimit-Policy'])).toEqual({
      fixed: { q: 100, w: 60 },
      daily: { q: 1_000, w: 86_400 },
      log: { q: 5, w: 10 },
      counter: { q: 50, w: 3_600 },
    });
    expect(membersOf(headers['RateLimit'])).toMatchObject({ fixed: { r: 99 }, daily: { r: 999 }, log: { r: 4 } });
    drain(limiter, 'log');
    expect(ask(limiter, ['log']).headers['Retry-After']).toBe('10');
  });

  it('name a partition by a digest: the same for the same key and policy, never the key', async () => {
    const { limiter } = await limiterWith(
      { name: 'a', local: { rate: 1, burst: 9 } },
      { name: 'b', local: { rate: 1, burst: 9 } },
    );
    const partition = (name: string, key: string) =>
      membersOf(headersFor(rule(limiter, [name], key), { partition: true }, NOW)['RateLimit'])[name]?.['pk'];
    expect(partition('a', 'alice')).toMatch(/^[\w+/]{12}$/);
    expect(partition('a', 'alice')).toEqual(partition('a', 'alice'));
    expect(partition('a', 'alice')).not.toEqual(partition('a', 'bob'));
    expect(partition('a', 'alice')).not.toEqual(partition('b', 'alice'));
  });

  it('say nothing of a policy that does not limit: shadow, allow', async () => {
    const { limiter } = await limiterWith(
      { name: 'shadow', local: { rate: 1, burst: 1 }, mode: 'shadow' },
      { name: 'open', local: { rate: 1, burst: 1 }, mode: 'allow' },
    );
    for (let i = 0; i < 3; i++)
      expect(ask(limiter, ['shadow', 'open'])).toMatchObject({ headers: {}, response: undefined });
  });

  it('do not tell a client to stop where a ceiling elsewhere is only not known to have more', async () => {
    const { limiter, api, time } = await remoteLimiterOf({ name: 'api', ceiling: { rate: 10, burst: 10 } });
    const call = api.acquire('caller');
    await time.advance(50);
    const decision = await call;
    expect(decision).toMatchObject({ allowed: true });
    const empty = { ...decision, remaining: 0, resetAfterMs: undefined };
    expect(headersFor([{ decision: empty, policy: api.policy, key: 'caller', cost: 1 }], {}, NOW)).toEqual({
      'RateLimit-Policy': '"api";q=10;w=1',
    });
    expect(limiter.degraded).toBe(false);
  });

  it('show the terms of a key that has its own, and the tighter of two tiers', async () => {
    const { limiter } = await limiterWith({
      name: 'api',
      local: { rate: 10, burst: 50 },
      ceiling: { rate: 5, burst: 100 },
      overrides: { vip: { local: { rate: 100, burst: 500 }, ceiling: { rate: 100, burst: 400 } } },
    });
    const policyOf = (key: string) => membersOf(headersFor(rule(limiter, ['api'], key), {}, NOW)['RateLimit-Policy']);
    expect(policyOf('caller')).toEqual({ api: { q: 50, w: 10 } });
    expect(policyOf('vip')).toEqual({ api: { q: 400, w: 4 } });
  });

  it('parse, and never promise more than the rate, whatever the terms and the history (C112)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5_000 }),
        fc.constantFrom('1s', '1m', '1h', '1d', 1, '7s'),
        fc.integer({ min: 1, max: 60 }),
        fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 0, max: 5_000 })), { maxLength: 12 }),
        async (rate, per, burst, history) => {
          const { limiter, time } = await limiterWith({ name: 'api', local: { rate, burst, per: per as '1s' } });
          for (const [wanted, pause] of history) {
            const cost = Math.min(wanted, burst);
            const { headers } = ask(limiter, ['api'], {}, cost);
            const { q, w } = membersOf(headers['RateLimit-Policy'])['api'] as { q: number; w: number };
            const { r, t } = membersOf(headers['RateLimit'])['api'] as { r: number; t: number };
            expect([q, w, r, t].every(Number.isSafeInteger)).toBe(true);
            expect(q).toBe(burst);
            expect(r).toBeLessThanOrEqual(q);
            const perSecond = limiter.policy('api').policy.terms.local?.ratePerMs as number;
            // A second is the shortest span there is, so that much may be said at once.
            if (t > 1) expect(r / t).toBeLessThanOrEqual(perSecond * 1_000 * (1 + 1e-9));
            if (headers['Retry-After'] !== undefined) {
              expect(headers['Retry-After']).toMatch(/^[1-9]\d*$/);
              expect(Number(headers['Retry-After'])).toBeGreaterThanOrEqual(t);
            }
            await time.advance(pause);
          }
        },
      ),
      { numRuns: 100 },
    );
  });
});
