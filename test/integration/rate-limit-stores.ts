import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import type { Limiter, LimiterOptions, PolicyDocument } from '../../src/index.js';
import { systemTime } from '../../src/time.js';
import type { Served } from '../contract/middleware.js';
import { eventually } from '../support/eventually.js';
import { RemoteCeiling } from '../support/remote-ceiling.js';

/** Middleware of somebody else's with a store of headgate, as the suite drives it. */
export interface StoreUnderTest {
  readonly name: string;
  /** Answers "hello" on `/` to at most `limit` requests of an `x-caller` a minute, by the policy `api`. */
  serve(limiter: Limiter, options: { limit: number; passOnStoreError?: boolean }): Promise<Served>;
}

const BURST = 60;
/** Slow enough for nothing to be refilled while the test runs. */
const SIXTY: PolicyDocument = { name: 'api', ceiling: { rate: 1, per: '1h', burst: BURST } };

export function storeContract(store: StoreUnderTest): void {
  const toClose: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of toClose.splice(0).reverse()) await close();
  });

  async function serve(policy: PolicyDocument, options: Partial<LimiterOptions>, passOnStoreError = false) {
    const limiter = await createLimiter({ policies: [policy], telemetry: false, ...options } as LimiterOptions<
      never,
      never
    >);
    toClose.push(() => limiter.close());
    const served = await store.serve(limiter, { limit: BURST, passOnStoreError });
    toClose.push(() => served.close());
    return (caller: string) => fetch(served.url, { headers: { 'x-caller': caller } });
  }

  describe(store.name, () => {
    it('holds one limit over all instances, and every caller to its own', async () => {
      const redis = { redis: inject('redisUrl'), keyPrefix: randomUUID().slice(0, 8), newStore: 'full' } as const;
      const instances = await Promise.all([1, 2, 3].map(() => serve(SIXTY, redis)));

      const answers: Response[] = [];
      let refusedInARow = 0;
      for (let turn = 0; refusedInARow < 2 * instances.length && turn < 10 * BURST; turn += 1) {
        const ask = instances[turn % instances.length] as (typeof instances)[number];
        const answer = await ask('mallory');
        // A busy machine may miss the deadline of a call; the next one asks again.
        if (answer.status === 503) continue;
        answers.push(answer);
        refusedInARow = answer.status === 200 ? 0 : refusedInARow + 1;
      }

      const passed = answers.filter(({ status }) => status === 200).length;
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]));
      expect(passed).toBeLessThanOrEqual(BURST);
      expect(passed).toBeGreaterThanOrEqual(0.9 * BURST);
      for (const { status, headers } of answers) {
        const remaining = Number(headers.get('x-ratelimit-remaining'));
        expect(remaining).toBeGreaterThanOrEqual(0);
        expect(remaining).toBeLessThan(BURST);
        if (status === 429) expect([remaining, Number(headers.get('retry-after')) > 0]).toEqual([0, true]);
      }
      await eventually(async () => (await instances[0]?.('alice'))?.status === 200, 'another caller passes');
    });

    it('counts to the limit in one process, and says when to come back', async () => {
      const ask = await serve({ name: 'api', local: { rate: 60, per: '1m', burst: BURST } }, {});
      const first = await ask('alice');
      expect([first.status, await first.text()]).toEqual([200, 'hello']);
      expect(first.headers.get('x-ratelimit-limit')).toBe(String(BURST));
      expect(first.headers.get('x-ratelimit-remaining')).toBe(String(BURST - 1));
      const answers = await Promise.all(Array.from({ length: 2 * BURST }, () => ask('alice')));
      const refused = answers.filter(({ status }) => status === 429);
      expect(refused.length).toBeGreaterThan(0);
      // One comes back every second.
      expect(new Set(refused.map(({ headers }) => headers.get('retry-after')))).toEqual(new Set(['1']));
    });

    it('counts windows, where the policy does', async () => {
      const redis = { redis: inject('redisUrl'), keyPrefix: randomUUID().slice(0, 8), newStore: 'full' } as const;
      const window = { algorithm: 'fixed-window', limit: BURST, window: '1h', align: 'first-use' } as const;
      const ask = await serve({ name: 'api', ceiling: window }, redis);
      const answers: Response[] = [];
      for (let i = 0; i < 10; i += 1)
        answers.push(...(await Promise.all(Array.from({ length: 10 }, () => ask('alice')))));

      const decided = answers.filter(({ status }) => status !== 503);
      const refused = decided.filter(({ status }) => status === 429);
      expect(decided.length - refused.length).toBe(BURST);
      for (const { headers } of refused) {
        const seconds = Number(headers.get('retry-after'));
        // To the end of a window of an hour that has just begun, and a little for the drift of clocks.
        expect(seconds).toBeGreaterThan(3_500);
        expect(seconds).toBeLessThan(3_700);
      }
    });

    it('leaves it to the middleware what becomes of a request while the ceiling can not be asked', async () => {
      const silent = () => Object.assign(new RemoteCeiling(systemTime), { fate: 'lose-call' as const });
      const failing = await serve(SIXTY, { ceiling: silent() });
      expect((await failing('alice')).status).toBe(503);
      const passing = await serve(SIXTY, { ceiling: silent() }, true);
      expect((await passing('alice')).status).toBe(200);
      const allowing = await serve({ ...SIXTY, outage: { mode: 'allow' } }, { ceiling: silent() });
      expect((await allowing('alice')).status).toBe(200);
    });
  });
}
