import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ClusterServer, clusterCeiling, clusterPolicySource, serveCluster } from '../../../src/cluster/index.js';
import { CeilingError, type CeilingStore, createLimiter, type LeaseCall } from '../../../src/index.js';
import { MemoryCeiling } from '../../../src/testing.js';
import { eventually } from '../../support/eventually.js';
import { FakeChannel } from './channel-pair.js';

function leaseCall(overrides: Partial<LeaseCall> = {}): LeaseCall {
  return {
    policy: 'api',
    key: 'k',
    fence: 'api',
    version: 0,
    burst: 10_000_000,
    rateNum: 1,
    rateDen: 1_000_000,
    inheritance: 'as-is',
    guard: 0,
    holder: 'a',
    seq: 1,
    disown: 0,
    unspent: 0,
    returned: 0,
    refund: 0,
    refundSince: 0,
    need: 1_000_000,
    head: 1_000_000,
    want: 0,
    demand: 0,
    weight: 1,
    lease: 2_000_000,
    sentAt: 0,
    since: 0,
    witness: 0,
    incarnation: 0,
    certainUntil: 0,
    ...overrides,
  };
}

describe('clusterCeiling', () => {
  let server: ClusterServer;
  let channels: { worker: FakeChannel; primary: FakeChannel };
  let store: CeilingStore;

  beforeEach(async () => {
    server = serveCluster({ newStore: 'full' });
    channels = FakeChannel.pair();
    server.attach(channels.primary);
    store = clusterCeiling({ channel: channels.worker });
    await eventually(() => store.ready, 'the primary serves');
  });
  afterEach(async () => {
    await store.close();
    await server.close();
  });

  it('is not ready before it has heard from a primary that serves', async () => {
    const { worker, primary } = FakeChannel.pair();
    const early = clusterCeiling({ channel: worker });
    expect(early.ready).toBe(false);
    await expect(early.lease([leaseCall()])[0]).rejects.toThrow(CeilingError);
    await expect(early.heartbeat('web', 'a')).rejects.toThrow('The primary of this cluster does not serve.');
    server.attach(primary);
    await eventually(() => early.ready, 'it is ready now');
    await early.close();
  });

  it('answers as the ledger of the primary does, and a repeat with the same reply', async () => {
    const call = leaseCall({ need: 4_000_000, head: 4_000_000 });
    const model = new MemoryCeiling({ clock: () => 1_700_000_000_000_000 });
    const expected = model.leaseNow(call);
    const [first] = await Promise.all(store.lease([call]));
    const [again] = await Promise.all(store.lease([call]));
    expect(Object.keys(first ?? {}).sort()).toEqual(Object.keys(expected).sort());
    expect(first).toMatchObject({ status: 'granted', granted: 4_000_000, seq: 1 });
    expect(again).toMatchObject({ granted: 4_000_000, incarnation: (first as { incarnation: number }).incarnation });
    const [older] = await Promise.all(store.lease([leaseCall({ seq: 0 })]));
    expect(older?.status).toBe('stale');
  });

  it('sends the calls of one tick in one message', async () => {
    const before = channels.worker.sent.length;
    const replies = await Promise.all(store.lease(['a', 'b', 'c'].map((key) => leaseCall({ key }))));
    expect(replies.map(({ status }) => status)).toEqual(['granted', 'granted', 'granted']);
    expect(channels.worker.sent.length - before).toBe(1);
  });

  it('starts all calls before it returns, and never throws', async () => {
    channels.worker.cut();
    expect(store.ready).toBe(false);
    const [reply] = store.lease([leaseCall()]);
    await expect(reply).rejects.toThrow(CeilingError);
    await store.close();
    await expect(store.lease([leaseCall()])[0]).rejects.toThrow('The ceiling is closed.');
  });

  it('counts the members of a group over all workers', async () => {
    const other = FakeChannel.pair();
    server.attach(other.primary);
    const second = clusterCeiling({ channel: other.worker });
    await eventually(() => second.ready, 'the primary serves it too');
    expect(await store.heartbeat('web', 'a')).toBe(1);
    expect(await second.heartbeat('web', 'b')).toBe(2);
    expect(await second.heartbeat('batch', 'b')).toBe(1);
    await second.close();
  });

  it('passes other messages by, in both directions, and those of another version of its own', async () => {
    for (const foreign of [null, 7, 'serving', {}, { headgate: 2, kind: 'closed' }, { kind: 'closed' }, { cmd: 'x' }]) {
      channels.worker.emit('message', foreign);
      channels.primary.emit('message', foreign);
    }
    channels.worker.emit('message', { headgate: 1, kind: 'answer', id: 999, answer: [] });
    const answered = channels.primary.sent.length;
    expect(store.ready).toBe(true);
    expect(await store.heartbeat('web', 'a')).toBe(1);
    expect(channels.primary.sent.length).toBe(answered + 1);
  });

  it('is not ready once the primary has stopped serving, and what was under way is rejected', async () => {
    const pending = store.lease([leaseCall()])[0];
    await server.close();
    await expect(pending).rejects.toThrow(/serve any more|closed/);
    await eventually(() => !store.ready, 'it noticed');
    await expect(store.heartbeat('web', 'a')).rejects.toThrow(CeilingError);
  });

  it('leaves nothing behind in the primary when a worker dies, nor in the worker when it is closed', async () => {
    const source = clusterPolicySource({ channel: channels.worker });
    await source.watch({ update() {}, trouble() {} });
    expect(channels.primary.listening).toBe(2);
    expect(channels.worker.listening).toBe(2);
    await source.close();
    await store.close();
    expect(channels.worker.listening).toBe(0);
    channels.worker.cut();
    expect(channels.primary.listening).toBe(0);
  });

  it('starts empty where this process has served before, unless told otherwise', async () => {
    const again = serveCluster();
    const [reply] = await Promise.all(again.ceiling.lease([leaseCall({ rateDen: 1_000_000_000 })]));
    expect(reply).toMatchObject({ status: 'granted', granted: 0 });
    await again.close();
  });

  it('carries a limiter: one ceiling over two workers, and a policy published by one of them', async () => {
    await server.policies.publish({ name: 'api', ceiling: { rate: 1, burst: 20, per: '1h' } });
    const other = FakeChannel.pair();
    server.attach(other.primary);
    const limiters = await Promise.all(
      [channels.worker, other.worker].map((channel) =>
        createLimiter({
          ceiling: clusterCeiling({ channel }),
          policySource: clusterPolicySource({ channel }),
          telemetry: false,
        }),
      ),
    );
    let allowed = 0;
    for (let i = 0; i < 40; i++) {
      const decision = await limiters[i % 2]?.policy('api').acquire('tenant');
      if (decision?.allowed) allowed += 1;
    }
    expect(allowed).toBe(20);

    await limiters[0]?.policies.publish({ name: 'api', mode: 'allow', ceiling: { rate: 1, burst: 20, per: '1h' } });
    await eventually(() => limiters[1]?.policy('api').tryAcquire('tenant'), 'the other worker allows everything');
    await Promise.all(limiters.map((limiter) => limiter.close()));
    expect(channels.primary.listening).toBe(2);
  });
});
