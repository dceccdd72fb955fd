import { describe, expect, it, vi } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import { UnknownPolicyError } from '../../src/errors.js';
import { ManualTime, memoryPolicySource } from '../../src/testing.js';
import { RemoteCeiling } from '../support/remote-ceiling.js';

const local = { rate: 1, burst: 2 };

describe('createLimiter', () => {
  it('needs no option: policies may be published later', async () => {
    const limiter = await createLimiter({ telemetry: false, policySource: memoryPolicySource() });
    expect(() => limiter.policy('api')).toThrow(UnknownPolicyError);
    expect(() => limiter.policy('api')).toThrow('Expected the name of a known policy (none yet), got "api".');
    await limiter.policies.publish({ name: 'api', local });
    expect(limiter.policy('api').tryAcquire('k')).toBe(true);
    await limiter.close();
  });

  it('resolves with the policies in force that are known at this moment, the newest of each name', async () => {
    const policySource = memoryPolicySource([{ name: 'api', version: 3, local: { rate: 1, burst: 50 } }]);
    const limiter = await createLimiter({ policies: [{ name: 'api', local }], policySource, telemetry: false });
    const api = limiter.policy('api');
    expect([api.policy.version, api.decide('k').limit]).toEqual([3, 50]);
    // What fits the version in force is no mistake, whatever was given in code.
    expect(api.tryAcquire('k', 40)).toBe(true);
    await limiter.close();
  });

  it('knows two limiters by two identities, though all their options are the same', async () => {
    const time = new ManualTime();
    const ceiling = new RemoteCeiling(time);
    const make = () =>
      createLimiter({
        policies: [{ name: 'api', ceiling: local }],
        instanceId: 'web-7',
        ceiling,
        time,
        telemetry: false,
      });
    const limiters = [await make(), await make()];
    for (const limiter of limiters) limiter.policy('api').tryAcquire('k');
    await time.advance(20);
    expect(limiters.map(({ instanceId }) => instanceId)).toEqual(['web-7', 'web-7']);
    expect(new Set(ceiling.calls.map(({ holder }) => holder)).size).toBe(2);
    const closing = Promise.all(limiters.map((limiter) => limiter.close()));
    await time.advance(300);
    await closing;
  });

  it('draws its identity from `crypto` where it shares a store, and has no use for it where the store is its own', async () => {
    const drawn = vi.spyOn(crypto, 'getRandomValues');
    const draws = async (options: Partial<Parameters<typeof createLimiter>[0]>) => {
      drawn.mockClear();
      const limiter = await createLimiter({
        policies: [{ name: 'api', ceiling: local }],
        telemetry: false,
        ...options,
      });
      limiter.policy('api').tryAcquire('k');
      await limiter.close();
      return drawn.mock.calls.length;
    };
    expect(await draws({ ceiling: new RemoteCeiling(new ManualTime()) })).toBe(1);
    expect(await draws({})).toBe(0);
    drawn.mockRestore();
  });

  it('beats for a ceiling elsewhere only: none for local policies, none where the store is in this process', async () => {
    for (const [policy, beats] of [
      [{ name: 'api', local }, 0],
      [{ name: 'api', ceiling: local }, 1],
    ] as const) {
      const time = new ManualTime();
      const ceiling = new RemoteCeiling(time);
      const limiter = await createLimiter({ policies: [policy], ceiling, time, telemetry: false });
      expect([ceiling.heartbeats, time.pending]).toEqual([beats, beats]);
      const closing = limiter.close();
      await time.advance(300);
      await closing;
    }
    const time = new ManualTime();
    const limiter = await createLimiter({ policies: [{ name: 'api', ceiling: local }], time, telemetry: false });
    expect(time.pending).toBe(0);
    await limiter.close();
  });
});
