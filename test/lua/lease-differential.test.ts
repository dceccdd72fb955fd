import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type History, history, Player, saturated } from './histories.js';
import { LedgerPair } from './ledger-pair.js';

let redis: Redis;
beforeAll(() => {
  redis = new Redis(inject('redisUrl'));
});
afterAll(() => redis.disconnect());

let histories = 0;

async function play({ steps, loseAllAt, ...start }: History): Promise<Player> {
  histories += 1;
  const player = new Player(new LedgerPair(redis, `differential-${histories}`), start);
  const compare = (lua: unknown, model: unknown): void => expect(lua).toEqual(model);
  for (const [index, step] of steps.entries()) {
    await player.play(step, compare);
    if (index === loseAllAt) await player.lose();
    if (index % 16 === 0) await player.compareRecords(compare);
  }
  await player.compareRecords(compare);
  await player.lose();
  return player;
}

/** Of runs that failed once; `HEADGATE_TEST_SEED=… npx vitest run test/lua` runs one alone. */
const SEEDS_KEPT = [1395000671];

function seeds(): number[] {
  const asked = process.env['HEADGATE_TEST_SEED'];
  return asked === undefined ? [...SEEDS_KEPT, Math.floor(Math.random() * 2 ** 31)] : [Number(asked)];
}

describe('the Lua in Redis and the model in memory', () => {
  it.each(seeds())(
    'answer every history alike, and hold the same afterwards (seed %i)',
    async (seed) => {
      let calls = 0;
      await fc.assert(
        fc.asyncProperty(history, async (history) => {
          calls += (await play(history)).calls;
        }),
        { seed, numRuns: 100 },
      );
      expect(calls).toBeGreaterThan(2_000);
    },
    60_000,
  );

  it.each(seeds())(
    'do so where all is granted that can be (seed %i)',
    async (seed) => {
      const shares: number[] = [];
      await fc.assert(
        fc.asyncProperty(saturated, async (history) => {
          shares.push((await play(history)).grantedShare);
        }),
        { seed, numRuns: 20 },
      );
      expect(Math.max(...shares)).toBeLessThanOrEqual(1);
      expect(shares.sort((a, b) => a - b)[shares.length / 2]).toBeGreaterThan(0.8);
    },
    60_000,
  );
});
