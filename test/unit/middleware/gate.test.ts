import { describe, expect, it } from 'vitest';
import { Gate } from '../../../src/middleware/gate.js';
import type { GateOptions } from '../../../src/middleware/gate-options.js';
import { limiterOf } from '../../support/limiter-under-test.js';

/** What five requests are told that come after the one that passed. */
async function told(options: Partial<GateOptions<object>>) {
  const { limiter } = await limiterOf({ local: { rate: 1, burst: 1 } });
  const gate = new Gate<object>(limiter, { policy: 'api', key: () => 'k', ...options });
  await gate.pass({}, {});
  const seconds: number[] = [];
  for (let i = 0; i < 5; i++) {
    const passage = await gate.pass({}, {});
    if (passage.outcome === 'denied') seconds.push(Number(passage.response.headers['Retry-After']));
  }
  return seconds;
}

describe('what a gate tells those it denies together', () => {
  it('is the same for all, unless they are to be spread', async () => {
    expect(await told({})).toEqual([1, 1, 1, 1, 1]);
    expect(await told({ spreadMs: 0 })).toEqual([1, 1, 1, 1, 1]);
  });

  it('is a turn of its own for each with `spreadMs`, put off by no more than that', async () => {
    expect(await told({ spreadMs: 60_000 })).toEqual([1, 2, 3, 4, 5]);
    expect(await told({ spreadMs: 2_000 })).toEqual([1, 2, 3, 3, 3]);
    expect(await told({ spreadMs: 60_000, maxRetryAfterSeconds: 2 })).toEqual([1, 2, 2, 2, 2]);
  });

  it('can’t be spread over a span that is none', async () => {
    await expect(told({ spreadMs: -1 })).rejects.toThrow(
      'Expected `spreadMs` to be a number of ms, 0 or more, got -1.',
    );
    await expect(told({ spreadMs: '1s' as never })).rejects.toThrow('`spreadMs`');
  });
});
