import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type History, history, Player } from './histories.js';
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

describe('the Lua in Redis and the model in memory', () => {
  it('answer every history alike, and hold the same afterwards', async () => {
    const seed = Number(process.env['HEADGATE_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    let calls = 0;
    await fc.assert(
      fc.asyncProperty(history, async (history) => {
        calls += (await play(history)).calls;
      }),
      { seed, numRuns: 120, endOnFailure: false },
    );
    console.log(`${calls} calls in ${histories} histories, seed ${seed}`);
    expect(calls).toBeGreaterThan(2_000);
  }, 60_000);
});
