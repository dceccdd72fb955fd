import * as api from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openTelemetryObserver } from '../../../src/telemetry/open-telemetry.js';
import { apiWith, counters, Meters, readings } from './sdk.js';

const LEASE = { policies: ['api'], calls: 1, need: 0, want: 20 };
const ANSWERED = { durationMs: 2, granted: 20, failed: 0 };
const ALLOWED = { 'headgate.policy.name': 'api', 'headgate.decision.outcome': 'allowed' };

let meters: Meters;
beforeEach(() => {
  meters = new Meters();
});
afterEach(() => meters.provider.shutdown());

function observer(): ReturnType<typeof openTelemetryObserver> {
  return openTelemetryObserver(
    apiWith(() => meters.provider),
    { version: '1.2.3' },
  );
}

describe('decisions', () => {
  test('have one outcome each, so that they add up to the calls made (envoyproxy/ratelimit#808)', async () => {
    observer().attach(
      readings({
        allowed: 100,
        allowedDegraded: 10,
        shadowDenied: 5,
        deniedLocal: 7,
        deniedCeiling: 20,
        deniedPolicy: 3,
        overflow: 4,
      }),
    );
    const decisions = (await meters.points()).filter(({ metric }) => metric === 'headgate.decisions');
    expect(decisions.map(({ attributes, value }) => [...Object.values(attributes).slice(1), value])).toEqual([
      ['allowed', 85],
      ['allowed_degraded', 10],
      ['shadow_denied', 5],
      ['denied', 'local', 7],
      ['denied', 'ceiling', 20],
      ['denied', 'policy', 3],
    ]);
  });
});

describe('lease calls', () => {
  test('have one outcome each', async () => {
    observer().attach(readings({ leaseCalls: 10, leaseFailures: 2, leaseRefusals: 1 }));
    for (const [outcome, value] of Object.entries({ answered: 7, failed: 2, refused: 1 })) {
      expect(await meters.value('headgate.lease.calls', { 'headgate.lease.outcome': outcome })).toBe(value);
    }
  });
});

describe('several limiters of one process', () => {
  test('add up by policy, each with an observer of its own', async () => {
    const shared = apiWith(() => meters.provider);
    const make = () => openTelemetryObserver(shared, { version: '1.2.3' });
    make().attach(readings({ allowed: 3, tokensSpent: 1.5 }, { tokensHeld: 10, keys: 1, version: 9, degraded: true }));
    make().attach(readings({ allowed: 4, tokensSpent: 2 }, { tokensHeld: 5, keys: 2, version: 8, waiting: 6 }));
    make().attach(readings({ policy: 'login', allowed: 1 }, { version: 1, degraded: true }));
    const of = (metric: string, policy = 'api') => meters.value(metric, { 'headgate.policy.name': policy });
    expect(await meters.value('headgate.decisions', ALLOWED)).toBe(7);
    expect(await of('headgate.spent.tokens')).toBe(3.5);
    expect(await of('headgate.held.token.count')).toBe(15);
    expect(await of('headgate.key.count')).toBe(3);
    expect(await of('headgate.waiter.count')).toBe(6);
    expect(await of('headgate.degraded.count')).toBe(1);
    expect(await of('headgate.policy.version'), 'the one that lags').toBe(8);
    expect(await of('headgate.degraded.count', 'login')).toBe(1);
  });

  test('leave their counts and take their state with them when they close', async () => {
    const counts = counters('api', { allowed: 3 });
    const leaving = { ...readings({}, { tokensHeld: 10, degraded: true }), counters: () => [counts] };
    const shared = observer();
    const detach = shared.attach(leaving);
    counts.allowed = 5;
    detach();
    detach();
    shared.attach(readings({ allowed: 1 }));
    expect(await meters.value('headgate.decisions', ALLOWED)).toBe(6);
    expect(await meters.value('headgate.held.token.count', { 'headgate.policy.name': 'api' })).toBe(0);
    expect(await meters.value('headgate.degraded.count', { 'headgate.policy.name': 'api' })).toBe(0);
  });

  test('are still exported by a process that closes them just before its last export', async () => {
    observer().attach(readings({ allowed: 3 }))();
    expect(await meters.value('headgate.decisions', ALLOWED)).toBe(3);
  });
});

describe('durations', () => {
  test('are in seconds, in buckets that suit a round trip, and only failures have an error type', async () => {
    const shared = observer();
    shared.roundTrip(LEASE, () => {})(ANSWERED);
    const error = Object.assign(new Error('boom'), { code: 'ETIMEDOUT' });
    shared.roundTrip(LEASE, () => {})({ durationMs: 100, granted: 0, failed: 1, error });
    const trips = (await meters.points()).filter(({ metric }) => metric === 'headgate.lease.duration');
    expect(trips.map(({ attributes }) => attributes)).toEqual([{}, { 'error.type': 'ETIMEDOUT' }]);
    expect(trips[0]?.value).toMatchObject({
      sum: 0.002,
      buckets: { boundaries: expect.arrayContaining([0.00025, 1]) },
    });
  });

  test('of a propagation are counted for changes that travelled, and never below zero', async () => {
    const shared = observer();
    const change = { policy: 'api', version: 2, previousVersion: 1, trace: undefined, error: undefined } as const;
    shared.policyChanged({ ...change, outcome: 'applied', via: 'hint', lagMs: 12 });
    shared.policyChanged({ ...change, outcome: 'applied', via: 'watch', lagMs: -30 });
    shared.policyChanged({ ...change, outcome: 'applied', via: 'watch', lagMs: undefined });
    shared.policyChanged({ ...change, outcome: 'applied', via: 'snapshot', lagMs: 86_400_000 });
    shared.policyChanged({ ...change, outcome: 'ignored', via: 'watch', lagMs: 15 });
    const lag = await meters.value('headgate.policy.propagation.duration', { 'headgate.policy.name': 'api' });
    expect(lag).toMatchObject({ count: 2, sum: 0.012, min: 0 });
  });
});

describe('a meter provider that is registered after the limiter was made', () => {
  afterEach(() => {
    api.metrics.disable();
    vi.useRealTimers();
  });

  test.each<[string, (observer: ReturnType<typeof openTelemetryObserver>) => void]>([
    ['the next round trip', (late) => late.roundTrip(LEASE, () => {})(ANSWERED)],
    [
      'the next policy change',
      (late) =>
        late.policyChanged({
          policy: 'api',
          version: 1,
          previousVersion: undefined,
          outcome: 'applied',
          via: 'code',
          lagMs: undefined,
          trace: undefined,
          error: undefined,
        }),
    ],
    ['the next wait', (late) => late.waiting('api', 1)('allowed')],
    ['the next limiter', (late) => late.attach(readings({ allowed: 0 }))()],
    ['five seconds of nothing', () => vi.advanceTimersByTime(5_000)],
  ])('is used from %s on, with all that was counted before', async (when, then) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const late = openTelemetryObserver(api, { version: '1.2.3' });
    const detach = late.attach(readings({ policy: when, allowed: 7 }));
    api.metrics.setGlobalMeterProvider(meters.provider);
    then(late);
    detach();
    vi.useRealTimers();
    const of = { 'headgate.policy.name': when, 'headgate.decision.outcome': 'allowed' };
    expect(await meters.value('headgate.decisions', of)).toBe(7);
  });

  test('may be replaced, and the one before then reads nothing any more', async () => {
    api.metrics.setGlobalMeterProvider(meters.provider);
    const late = openTelemetryObserver(api, { version: '1.2.3' });
    late.attach(readings({ policy: 'moves', allowed: 7 }));
    const next = new Meters();
    api.metrics.disable();
    api.metrics.setGlobalMeterProvider(next.provider);
    late.roundTrip(LEASE, () => {})(ANSWERED);
    const of = { 'headgate.policy.name': 'moves', 'headgate.decision.outcome': 'allowed' };
    expect(await next.value('headgate.decisions', of)).toBe(7);
    expect(await next.value('headgate.lease.duration', {})).toMatchObject({ count: 1 });
    await next.provider.shutdown();
  });
});
