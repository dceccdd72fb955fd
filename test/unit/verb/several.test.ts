import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { peek } from '../../../src/verb/one-limit.js';
import { acquireAll, decideAll, type JointDecision, type Limit } from '../../../src/verb/several.js';
import { closed, limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';

const POLICIES = [
  { name: 'user', local: { rate: 1, burst: 5 } },
  { name: 'tenant', ceiling: { rate: 1, burst: 8 } },
  { name: 'service', local: { rate: 10, burst: 20 }, ceiling: { rate: 2, burst: 10 } },
];
const all = (cost = 1): Limit[] => [
  { policy: 'user', key: 'alice', cost },
  { policy: 'tenant', key: 'acme', cost },
  { policy: 'service', key: 'all', cost },
];
const fleetOf = () => limiterOf(POLICIES[0] as (typeof POLICIES)[0], { policies: POLICIES } as never);

describe('several limits at once', () => {
  it('are all charged where all have enough', async () => {
    const { limiter } = await fleetOf();
    const decision = decideAll(limiter, all(3));
    expect(decision).toMatchObject({
      allowed: true,
      decisions: [{ remaining: 2 }, { remaining: 5 }, { remaining: 7 }],
    });
    expect(limiter.stats().map(({ allowed }) => allowed)).toEqual([1, 1, 1]);
  });

  it('are none of them charged where one has not, and that one is named and counted alone (C166, C179)', async () => {
    const { limiter } = await fleetOf();
    limiter.policy('service').tryAcquire('all', 9);
    for (let i = 0; i < 50; i++) {
      expect(decideAll(limiter, all(2))).toMatchObject({
        allowed: false,
        deniedBy: 2,
        denied: { policy: 'service', limitedBy: 'ceiling', reason: 'empty', retryAfterMs: 501 },
      });
    }
    expect(peek(limiter.policy('user'), 'alice').remaining).toBe(5);
    expect(peek(limiter.policy('tenant'), 'acme').remaining).toBe(8);
    const counted = limiter
      .stats()
      .map(({ allowed, deniedLocal, deniedCeiling }) => [allowed, deniedLocal, deniedCeiling]);
    expect(counted).toEqual([
      [0, 0, 0],
      [0, 0, 0],
      [1, 0, 50],
    ]);
  });

  it('name the one that will deny for longest, so that its wait is that of all together', async () => {
    const { limiter } = await fleetOf();
    limiter.policy('user').tryAcquire('alice', 4);
    limiter.policy('tenant').tryAcquire('acme', 8);
    expect(decideAll(limiter, all(2))).toMatchObject({
      deniedBy: 1,
      denied: { policy: 'tenant', retryAfterMs: 2_000 },
    });
  });

  it('may name the same bucket twice: it is charged twice, or not at all', async () => {
    const { limiter } = await fleetOf();
    const twice: Limit[] = [
      { policy: 'user', key: 'alice', cost: 3 },
      { policy: 'user', key: 'alice', cost: 3 },
    ];
    expect(decideAll(limiter, twice)).toMatchObject({ allowed: false, deniedBy: 1 });
    expect(peek(limiter.policy('user'), 'alice').remaining).toBe(5);
  });

  it('refuse what is no limit, and have then charged nothing', async () => {
    const { limiter } = await fleetOf();
    expect(() => decideAll(limiter, [])).toThrow('at least one limit');
    expect(() => decideAll(limiter, [...all(1), { policy: 'nobody', key: 'k' }])).toThrow('known policy');
    expect(() => decideAll(limiter, [...all(1), { policy: 'user', key: '' }])).toThrow('non-empty');
    expect(() => decideAll(limiter, [...all(1), { policy: 'user', key: 'k', cost: 6 }])).toThrow('local burst of 5');
    await expect(acquireAll(limiter, all(1), { cost: 1 } as never)).rejects.toThrow('option of `acquireAll`');
    expect(peek(limiter.policy('user'), 'alice').remaining).toBe(5);
  });

  it('pass where one of them only shadows, which is counted there', async () => {
    const policies = [
      { name: 'user', local: { rate: 1, burst: 5 } },
      { name: 'new', mode: 'shadow' as const, local: { rate: 1, burst: 1 } },
    ];
    const { limiter } = await limiterOf(policies[0] as never, { policies });
    const both: Limit[] = [
      { policy: 'new', key: 'k' },
      { policy: 'user', key: 'k' },
    ];
    for (let i = 0; i < 5; i++) expect(decideAll(limiter, both).allowed).toBe(true);
    expect(decideAll(limiter, both)).toMatchObject({ allowed: false, deniedBy: 1 });
    expect(limiter.stats().find(({ policy }) => policy === 'new')).toMatchObject({ shadowDenied: 4, allowed: 5 });
  });
});

describe('waiting for several limits at once', () => {
  it('ends when all of them have enough, and charges them then', async () => {
    const { limiter, time } = await fleetOf();
    limiter.policy('user').tryAcquire('alice', 5);
    limiter.policy('tenant').tryAcquire('acme', 8);
    const waits = acquireAll(limiter, all(2), { maxWaitMs: 5_000 });
    await time.advance(1_990);
    expect(await soFar(waits)).toBe('pending');
    expect(peek(limiter.policy('service'), 'all').remaining).toBe(10);
    await time.advance(30);
    expect(await soFar(waits)).toMatchObject({ allowed: true });
    expect(peek(limiter.policy('service'), 'all').remaining).toBe(8);
    expect(limiter.stats().map(({ allowed }) => allowed)).toEqual([2, 2, 1]);
  });

  it('is refused at once where it can’t end in time', async () => {
    const { limiter } = await fleetOf();
    limiter.policy('tenant').tryAcquire('acme', 8);
    expect(await soFar(acquireAll(limiter, all(2), { maxWaitMs: 1_500 }))).toMatchObject({
      allowed: false,
      deniedBy: 1,
    });
    expect(await soFar(acquireAll(limiter, all(2)))).toMatchObject({ allowed: false });
    expect(peek(limiter.policy('user'), 'alice').remaining).toBe(5);
  });

  it('can be given up, and has then charged nothing and left nothing behind', async () => {
    const { limiter, time } = await fleetOf();
    limiter.policy('tenant').tryAcquire('acme', 8);
    const abort = new AbortController();
    const waits = acquireAll(limiter, all(2), { maxWaitMs: 5_000, signal: abort.signal });
    await time.advance(500);
    abort.abort(new Error('gone'));
    await expect(waits).rejects.toThrow('gone');
    expect(limiter.stats().map(({ waiting }) => waiting)).toEqual([0, 0, 0]);
    await time.advance(10_000);
    expect(peek(limiter.policy('tenant'), 'acme').remaining).toBe(8);
    expect(peek(limiter.policy('user'), 'alice').remaining).toBe(5);
  });

  it('waits for the first answers of ceilings elsewhere, each once', async () => {
    const policies = [
      { name: 'a', ceiling: { rate: 10, burst: 10 } },
      { name: 'b', ceiling: { rate: 10, burst: 10 } },
    ];
    const { limiter, time } = await remoteLimiterOf(policies[0] as never, { policies });
    const both: Limit[] = [
      { policy: 'a', key: 'k', cost: 3 },
      { policy: 'b', key: 'k', cost: 3 },
    ];
    const waits = acquireAll(limiter, both);
    await time.advance(50);
    expect(await soFar(waits)).toMatchObject({ allowed: true });
    const [a, b] = limiter.stats();
    expect([a?.allowed, a?.tokensSpent, b?.allowed, b?.tokensSpent]).toEqual([1, 3, 1, 3]);
  });

  it('asks the store for what is needed, and for nothing on behalf of those who wait', async () => {
    const policies = [
      { name: 'client', ceiling: { rate: 10, burst: 10 } },
      { name: 'all', ceiling: { rate: 100, burst: 100 } },
    ];
    const { limiter, time, remote } = await remoteLimiterOf(policies[0] as never, { policies });
    const waits = Array.from({ length: 8 }, (_, i) =>
      acquireAll(limiter, [
        { policy: 'client', key: `client ${i}` },
        { policy: 'all', key: 'all' },
      ]),
    );
    await time.advance(60);
    expect(
      (await Promise.all(waits.map((wait) => soFar(wait)))).map((one) => one !== 'pending' && one.allowed),
    ).toEqual(Array(8).fill(true));
    // One for each client, and one for what they all ask of the other.
    const needs = remote.calls.filter(({ need }) => need > 0).map(({ policy, need }) => [policy, need]);
    expect(needs).toEqual([...Array(8).fill(['client', 1_000_000]), ['all', 8_000_000]]);
  });

  it('never charges some of them only, whatever else goes on', async () => {
    const step = fc.record({
      what: fc.constantFrom('all', 'all', 'wait', 'user', 'tenant', 'abort'),
      cost: fc.integer({ min: 1, max: 4 }),
      passes: fc.constantFrom(0, 0, 100, 700, 2_000),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (steps) => {
        const { limiter, time } = await fleetOf();
        // What each has been charged, as its tokens say: refill is slow enough to be reckoned with.
        const charged = { user: 0, tenant: 0, service: 0 };
        const took = (decision: JointDecision, cost: number): void => {
          if (decision.allowed) for (const name of ['user', 'tenant', 'service'] as const) charged[name] += cost;
        };
        const aborts: AbortController[] = [];
        for (const { what, cost, passes } of steps) {
          if (what === 'all') took(decideAll(limiter, all(cost)), cost);
          else if (what === 'wait') {
            const abort = new AbortController();
            aborts.push(abort);
            acquireAll(limiter, all(cost), { maxWaitMs: 4_000, signal: abort.signal }).then(
              (decision) => took(decision, cost),
              () => {},
            );
          } else if (what === 'abort') aborts.shift()?.abort(new Error('aborted'));
          else if (limiter.policy(what).tryAcquire(what === 'user' ? 'alice' : 'acme', cost)) {
            charged[what as 'user' | 'tenant'] += cost;
          }
          await time.advance(passes);
        }
        await time.advance(6_000);
        const ms = time.now() - 1_000;
        expect(charged.user).toBeLessThanOrEqual(5 + ms / 1_000);
        expect(charged.tenant).toBeLessThanOrEqual(8 + ms / 1_000);
        expect(charged.service).toBeLessThanOrEqual(10 + ms / 500);
        // Given time, all is there again: nothing stays charged for what was refused.
        await time.advance(15_000);
        expect(limiter.policy('user').decide('alice', 5).allowed).toBe(true);
        expect(limiter.policy('tenant').decide('acme', 8).allowed).toBe(true);
        expect(limiter.policy('service').decide('all', 10).allowed).toBe(true);
        await closed(limiter, time);
      }),
      { numRuns: 300 },
    );
  }, 20_000);
});
