import * as api from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from 'vitest';
import { guardedObserver } from '../../../src/telemetry/guarded-observer.js';
import { type Observer, silentObserver } from '../../../src/telemetry/observer.js';
import { openTelemetryObserver } from '../../../src/telemetry/open-telemetry.js';
import type { OpenTelemetryApi } from '../../../src/telemetry/open-telemetry-api.js';
import { everythingHappens } from './scenario.js';
import { apiWith, Meters, readings, registerTracer } from './sdk.js';

const LEASE = { policies: ['api'], calls: 1, need: 0, want: 20 };
const ANSWERED = { durationMs: 2, granted: 20, failed: 0 };

function boom(_after?: unknown): never {
  throw new Error('boom');
}

function twice(send: () => void): () => void {
  send();
  send();
  return () => {};
}

/** Any property of it, at any depth, can be called and throws. */
const throwing = { get: () => boom };

let warn: MockInstance<typeof process.emitWarning>;
beforeEach(() => {
  warn = vi.spyOn(process, 'emitWarning').mockReturnValue();
});
afterEach(() => warn.mockRestore());

describe('an observer that throws', () => {
  test.each(['ROOT_CONTEXT', 'context', 'trace', 'metrics', 'propagation'] as const)(
    'in `%s` of the API harms nothing, and is warned of at most once',
    (part) => {
      const broken: OpenTelemetryApi = { ...api, metrics: new Meters(), [part]: new Proxy({}, throwing) } as never;
      const observer = openTelemetryObserver(broken, { version: '1.2.3' });
      expect(() => everythingHappens(observer)).not.toThrow();
      const send = vi.fn();
      observer.roundTrip(LEASE, send)(ANSWERED);
      expect(send).toHaveBeenCalledTimes(1);
      expect(observer.watchesDenials()).toBe(false);
      expect(observer.inject()).toEqual({});
      expect(warn.mock.calls.length).toBeLessThanOrEqual(1);
    },
  );

  test('in its spans still has them ended, and its metrics recorded', async () => {
    const end = vi.fn();
    const span = { end, isRecording: boom, setAttributes: boom, setStatus: boom, addEvent: boom };
    const trace = { getTracer: () => ({ startSpan: () => span }), setSpan: () => api.ROOT_CONTEXT };
    const meters = new Meters();
    const broken = { ...apiWith(() => meters.provider), trace } as never;
    openTelemetryObserver(broken, { version: '1.2.3' }).roundTrip(LEASE, () => {})(ANSWERED);
    expect(end).toHaveBeenCalledTimes(1);
    expect(await meters.value('headgate.lease.duration', {})).toMatchObject({ count: 1 });
    expect(warn).toHaveBeenCalledTimes(1);
  });

  test('in its metrics still has its spans', async () => {
    const tracer = registerTracer();
    const record = { record: boom, add: boom };
    const meter = new Proxy({}, { get: () => () => record });
    const observer = openTelemetryObserver(
      apiWith(() => ({ getMeter: () => meter as api.Meter })),
      { version: '1.2.3' },
    );
    everythingHappens(observer);
    expect(tracer.spans().map(({ name }) => name)).toEqual(
      expect.arrayContaining(['headgate.lease', 'headgate.wait', 'process headgate.policy.{policy}']),
    );
    await tracer.unregister();
  });

  test('in the readings of one limiter costs one collection and nothing else', async () => {
    const meters = new Meters();
    const observer = openTelemetryObserver(
      apiWith(() => meters.provider),
      { version: '1.2.3' },
    );
    const detach = observer.attach({ instanceId: 'web-7', counters: boom, gauges: boom });
    expect(await meters.points()).toEqual([]);
    detach();
    observer.attach(readings({ allowed: 3 }));
    expect(await meters.value('headgate.decisions', { 'headgate.decision.outcome': 'allowed' })).toBe(3);
  });
});

describe('a round trip', () => {
  const observers: [string, Observer['roundTrip']][] = [
    ['throws before it sends', boom],
    ['throws after it sends', (_start, send) => boom(send())],
    ['sends twice', (_start, send) => twice(send)],
    ['forgets to send', () => () => {}],
  ];
  test.each(observers)('is sent exactly once by an observer that %s', (_what, roundTrip) => {
    const send = vi.fn();
    guardedObserver({ ...silentObserver, roundTrip }).roundTrip(LEASE, send)(ANSWERED);
    expect(send).toHaveBeenCalledTimes(1);
  });

  test('whose sending throws is ended with that error, which reaches the sender', () => {
    const end = vi.fn();
    const roundTrip: Observer['roundTrip'] = (_start, send) => {
      send();
      return end;
    };
    const guarded = guardedObserver({ ...silentObserver, roundTrip });
    const error = new Error('not sent');
    expect(() =>
      guarded.roundTrip(LEASE, () => {
        throw error;
      }),
    ).toThrow(error);
    expect(end.mock.calls).toEqual([[{ durationMs: 0, granted: 0, failed: 1, error }]]);
    expect(warn).not.toHaveBeenCalled();
  });
});

describe('with no provider registered', () => {
  test('nothing is thrown, and nothing is warned of', () => {
    expect(() => everythingHappens(openTelemetryObserver(api, { version: '1.2.3' }))).not.toThrow();
    expect(warn).not.toHaveBeenCalled();
  });

  test('denials are not watched for, and instruments are made once and not again', () => {
    const provider = { getMeter: vi.fn(() => api.createNoopMeter()) };
    const observer = openTelemetryObserver(
      apiWith(() => provider),
      { version: '1.2.3' },
    );
    for (let i = 0; i < 1_000; i++) observer.roundTrip(LEASE, () => {})(ANSWERED);
    expect(provider.getMeter).toHaveBeenCalledTimes(1);
    expect(observer.watchesDenials()).toBe(false);
  });
});
