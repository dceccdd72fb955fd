import { describe, expect, it } from 'vitest';
import { InvalidPolicyError, PolicySourceError } from '../../src/errors.js';
import { memoryPolicySource } from '../../src/policy/memory-source.js';
import { parsePolicies } from '../../src/policy/parse-policy.js';
import { staticPolicySource } from '../../src/policy/static-source.js';
import { describePolicySource, policy } from './policy-source.js';
import { RecordingListener } from './policy-source-listener.js';

describePolicySource('memory', async () => {
  const shared = memoryPolicySource();
  return { source: () => shared, dispose: () => shared.close() };
});

describe('memoryPolicySource', () => {
  it('starts with the policies it is given', async () => {
    const source = memoryPolicySource([policy('api', 3)]);
    const listener = new RecordingListener();
    await source.watch(listener);
    expect(listener.newest('api')).toEqual({ name: 'api', document: policy('api', 3), via: 'snapshot' });
  });

  it('serves the limiters that still watch when one of them closes it', async () => {
    const source = memoryPolicySource();
    const listener = new RecordingListener();
    await source.watch(new RecordingListener());
    await source.watch(listener);
    await source.close();
    await source.publish(policy('api', 1), 0);
    expect(listener.version('api')).toBe(1);
    await source.close();
    await expect(source.publish(policy('api', 2), 1)).rejects.toThrow(PolicySourceError);
  });

  it('refuses what is not a policy', () => {
    expect(() => memoryPolicySource([{ name: 'api' }])).toThrow(InvalidPolicyError);
  });
});

describe('staticPolicySource', () => {
  it('delivers what it was given, once', async () => {
    const source = staticPolicySource(parsePolicies([policy('api', 0), policy('web', 2)]));
    const listener = new RecordingListener();
    await source.watch(listener);
    expect(listener.updates).toEqual([
      { name: 'api', document: policy('api', 0), via: 'snapshot' },
      { name: 'web', document: policy('web', 2), via: 'snapshot' },
    ]);
    expect(await source.list()).toEqual([policy('api', 0), policy('web', 2)]);
    await source.close();
  });

  it('can’t be published to', async () => {
    const refused = staticPolicySource(parsePolicies([policy('api', 0)])).publish(policy('api', 1), 0);
    await expect(refused).rejects.toThrow(PolicySourceError);
    await expect(refused).rejects.toThrow(
      'Expected a policy source that can be written, got policies given in code: can\'t publish "api".',
    );
  });
});
