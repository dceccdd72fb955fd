import { expect, it } from 'vitest';
import { clusterPolicySource, serveCluster } from '../../../src/cluster/index.js';
import { describePolicySource, policy } from '../../contract/policy-source.js';
import { RecordingListener } from '../../contract/policy-source-listener.js';
import { eventually } from '../../support/eventually.js';
import { FakeChannel } from './channel-pair.js';

describePolicySource('cluster', async () => {
  const server = serveCluster();
  return {
    source: () => {
      const { worker, primary } = FakeChannel.pair();
      server.attach(primary);
      return clusterPolicySource({ channel: worker });
    },
    dispose: () => server.close(),
  };
});

it('starts without a primary that serves, says so, and is told everything once one does', async () => {
  const { worker, primary } = FakeChannel.pair();
  const source = clusterPolicySource({ channel: worker });
  const listener = new RecordingListener();
  await source.watch(listener);
  expect(listener.heard('Expected the primary of this cluster to serve policies')).toBe(true);
  expect(listener.updates).toEqual([]);

  const server = serveCluster({ policies: [policy('api', 3)] });
  server.attach(primary);
  await eventually(() => listener.version('api') === 3, 'the policy arrived');
  await source.close();
  await server.close();
});

it('learns what it missed from a primary that serves anew', async () => {
  const { worker, primary } = FakeChannel.pair();
  const first = serveCluster({ policies: [policy('api', 1)] });
  first.attach(primary);
  const source = clusterPolicySource({ channel: worker });
  const listener = new RecordingListener();
  await source.watch(listener);
  await first.close();
  await eventually(() => listener.heard('does not serve policies any more'), 'the end was noticed');
  const second = serveCluster({ policies: [policy('api', 2)] });
  second.attach(primary);
  await eventually(() => listener.version('api') === 2, 'the newer policy arrived');
  expect(listener.heard('serves policies again')).toBe(true);
  await source.close();
  await second.close();
});

it('lets the primary publish to all its workers', async () => {
  const server = serveCluster({ policies: [policy('api', 0)] });
  const listeners = [new RecordingListener(), new RecordingListener()];
  const sources = listeners.map(() => {
    const { worker, primary } = FakeChannel.pair();
    server.attach(primary);
    return clusterPolicySource({ channel: worker });
  });
  await Promise.all(sources.map((source, i) => source.watch(listeners[i] as RecordingListener)));
  const { version } = await server.policies.publish({ name: 'api', ceiling: { rate: 2, burst: 2 } });
  for (const listener of listeners) await eventually(() => listener.version('api') === version, 'it arrived');
  expect(server.policies.get('api')?.ceiling).toEqual({ rate: 2, burst: 2 });
  await Promise.all(sources.map((source) => source.close()));
  await server.close();
});

it('is not used outside a forked process', () => {
  const { send } = process;
  try {
    delete (process as { send?: unknown }).send;
    expect(() => clusterPolicySource()).toThrow('Expected `clusterPolicySource()` to be used in a worker');
  } finally {
    if (send) process.send = send;
  }
});
