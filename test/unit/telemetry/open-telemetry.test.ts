import * as api from '@opentelemetry/api';
import { AlwaysOffSampler } from '@opentelemetry/sdk-trace-node';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Observer, PolicyChange } from '../../../src/telemetry/observer.js';
import { loadOpenTelemetry, openTelemetryObserver } from '../../../src/telemetry/open-telemetry.js';
import { type OpenTelemetryApi, SPAN_KIND, STATUS_ERROR } from '../../../src/telemetry/open-telemetry-api.js';
import { registerTracer } from './sdk.js';

const LEASE = { policies: ['api', 'login'], calls: 3, need: 1, want: 20 };
const ANSWERED = { durationMs: 2, granted: 20, failed: 0 };
const CHANGE: PolicyChange = {
  policy: 'api',
  version: 2,
  previousVersion: 1,
  outcome: 'applied',
  via: 'watch',
  lagMs: 12,
  trace: undefined,
  error: undefined,
};

let tracer: ReturnType<typeof registerTracer>;
afterEach(() => tracer?.unregister());

function observe(): { observer: Observer; spansNamed: (name: string) => ReturnType<typeof tracer.spans> } {
  tracer = registerTracer();
  const observer = openTelemetryObserver(api, { version: '1.2.3' });
  return { observer, spansNamed: (name) => tracer.spans().filter((span) => span.name === name) };
}

/** Runs within a span of the application, as a request does. */
function request<Result>(run: (span: api.Span) => Result): Result {
  return api.trace.getTracer('app').startActiveSpan('request', (span) => {
    try {
      return run(span);
    } finally {
      span.end();
    }
  });
}

describe('a round trip', () => {
  test('is the parent of the spans that sending makes, and no child of the request that happened to start it', () => {
    const { observer, spansNamed } = observe();
    request((span) => {
      const baggage = api.propagation.createBaggage({ user: { value: 'of this request' } });
      api.context.with(api.propagation.setBaggage(api.context.active(), baggage), () => {
        const end = observer.roundTrip(LEASE, () => {
          expect(api.propagation.getActiveBaggage()).toBeUndefined();
          api.trace.getTracer('redis').startSpan('EVALSHA').end();
        });
        expect(api.trace.getActiveSpan()).toBe(span);
        end(ANSWERED);
      });
    });
    const [lease] = spansNamed('headgate.lease');
    expect(lease?.parentSpanContext).toBeUndefined();
    expect(lease?.links).toEqual([]);
    expect(spansNamed('EVALSHA')[0]?.parentSpanContext?.spanId).toBe(lease?.spanContext().spanId);
    expect(lease?.status.code).toBe(api.SpanStatusCode.UNSET);
    expect(lease?.attributes).toEqual({
      'headgate.policy.names': ['api', 'login'],
      'headgate.lease.call_count': 3,
      'headgate.lease.failed_count': 0,
      'headgate.lease.needed_tokens': 1,
      'headgate.lease.wanted_tokens': 20,
      'headgate.lease.granted_tokens': 20,
    });
  });

  test('that failed has an error status without a message, and the type of the innermost error', () => {
    const { observer, spansNamed } = observe();
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const error = new Error('The ceiling store failed.', { cause: refused });
    observer.roundTrip(LEASE, () => {})({ durationMs: 100, granted: 0, failed: 3, error });
    const [lease] = spansNamed('headgate.lease');
    expect(lease?.status).toEqual({ code: api.SpanStatusCode.ERROR });
    expect(lease?.attributes).toMatchObject({ 'error.type': 'ECONNREFUSED', 'headgate.lease.failed_count': 3 });
    expect(lease?.events).toEqual([]);
  });

  test('ends once, whatever comes after its time-out (C176, opentelemetry-js-contrib#2874)', () => {
    const { observer, spansNamed } = observe();
    const end = observer.roundTrip(LEASE, () => {});
    end({ durationMs: 100, granted: 0, failed: 3, error: new Error('No reply in time.') });
    end(ANSWERED);
    expect(spansNamed('headgate.lease')).toHaveLength(1);
    expect(spansNamed('headgate.lease')[0]?.attributes).toMatchObject({ 'headgate.lease.granted_tokens': 0 });
  });

  test('takes the Redis spans with it where it is not sampled', async () => {
    tracer = registerTracer(new AlwaysOffSampler());
    const observer = openTelemetryObserver(api, { version: '1.2.3' });
    let recording: boolean | undefined;
    observer.roundTrip(LEASE, () => {
      recording = api.trace.getActiveSpan()?.isRecording();
    })(ANSWERED);
    expect(recording).toBe(false);
    expect(tracer.spans()).toEqual([]);
  });
});

describe('a policy change', () => {
  test('is a root of its own, linked to the span that published it', () => {
    const { observer, spansNamed } = observe();
    const { trace, publisher } = request((span) => ({ trace: observer.inject(), publisher: span.spanContext() }));
    expect(trace).toEqual({ traceparent: expect.stringContaining(publisher.spanId) });
    request(() => observer.policyChanged({ ...CHANGE, trace }));

    const [span] = spansNamed('process headgate.policy.{policy}');
    expect(span?.parentSpanContext).toBeUndefined();
    expect(span?.spanContext().traceId).not.toBe(publisher.traceId);
    expect(span?.links.map(({ context }) => [context.traceId, context.spanId])).toEqual([
      [publisher.traceId, publisher.spanId],
    ]);
    expect(span?.kind).toBe(api.SpanKind.CONSUMER);
    expect(span?.attributes).toMatchObject({
      'messaging.system': 'nats',
      'messaging.destination.name': 'headgate.policy.api',
      'headgate.policy.version': 2,
      'headgate.policy.previous_version': 1,
    });
  });

  test.each([undefined, {}, { traceparent: 'nonsense' }, { traceparent: `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01` }])(
    'has no link where its carrier is %j',
    (trace) => {
      const { observer, spansNamed } = observe();
      observer.policyChanged({ ...CHANGE, trace });
      expect(spansNamed('process headgate.policy.{policy}')[0]?.links).toEqual([]);
    },
  );

  test('that is known already makes no span', () => {
    const { observer } = observe();
    observer.policyChanged({ ...CHANGE, outcome: 'ignored' });
    expect(tracer.spans()).toEqual([]);
  });

  test('made by code is a child of the span that made it', () => {
    const { observer, spansNamed } = observe();
    const parent = request((span) => {
      observer.policyChanged({ ...CHANGE, via: 'code' });
      return span.spanContext().spanId;
    });
    expect(spansNamed('headgate.policy.change')[0]?.parentSpanContext?.spanId).toBe(parent);
  });

  test('that is not valid has an error status and the type of the error', () => {
    const { observer, spansNamed } = observe();
    observer.policyChanged({ ...CHANGE, outcome: 'invalid', error: new TypeError('bad document') });
    const [span] = spansNamed('process headgate.policy.{policy}');
    expect(span?.status).toEqual({ code: api.SpanStatusCode.ERROR });
    expect(span?.attributes['error.type']).toBe('TypeError');
  });
});

describe('an outage', () => {
  test('is a span where it begins, and one as long as the outage where it ends', () => {
    const { observer, spansNamed } = observe();
    observer.degradedChanged({ degraded: true, forMs: undefined, error: new Error('gone') });
    observer.degradedChanged({ degraded: false, forMs: 5_000, error: undefined });
    expect(spansNamed('headgate.degraded.begin')[0]?.status.code).toBe(api.SpanStatusCode.ERROR);
    const [end] = spansNamed('headgate.degraded.end');
    expect(end?.status.code).toBe(api.SpanStatusCode.UNSET);
    expect(end?.duration[0]).toBeGreaterThanOrEqual(4);
    expect(end?.duration[0]).toBeLessThan(10);
  });
});

describe('a wait', () => {
  test.each(['allowed', 'denied', 'aborted'] as const)(
    'that ends %s is a child of its caller, and no error',
    (outcome) => {
      const { observer, spansNamed } = observe();
      const { end, caller } = request((span) => ({
        end: observer.waiting('api', 3),
        caller: span.spanContext().spanId,
      }));
      // As the keeper ends it: in the context of somebody else's request.
      request(() => end(outcome));
      const [wait] = spansNamed('headgate.wait');
      expect(wait?.parentSpanContext?.spanId).toBe(caller);
      expect(wait?.status.code).toBe(api.SpanStatusCode.UNSET);
      expect(wait?.attributes).toEqual({
        'headgate.policy.name': 'api',
        'headgate.decision.cost': 3,
        'headgate.wait.outcome': outcome,
      });
    },
  );
});

describe('a denial', () => {
  const note = {
    policy: 'api',
    policyVersion: 2,
    limitedBy: 'local',
    reason: 'empty',
    cost: 3,
    retryAfterMs: undefined,
    shadow: false,
  } as const;

  test('is an event on the recording span it happens in, which stays without an error status', () => {
    const { observer, spansNamed } = observe();
    request(() => {
      expect(observer.watchesDenials()).toBe(true);
      observer.denied(note);
    });
    const [span] = spansNamed('request');
    expect(span?.status.code).toBe(api.SpanStatusCode.UNSET);
    expect(span?.events.map(({ name, attributes }) => [name, attributes])).toEqual([
      [
        'headgate.denied',
        {
          'headgate.policy.name': 'api',
          'headgate.policy.version': 2,
          'headgate.decision.limited_by': 'local',
          'headgate.decision.reason': 'empty',
          'headgate.decision.cost': 3,
          'headgate.decision.shadow': false,
        },
      ],
    ]);
  });

  test('is not watched for without a span', () => {
    const { observer } = observe();
    expect(observer.watchesDenials()).toBe(false);
    observer.denied(note);
    expect(tracer.spans()).toEqual([]);
  });

  test('is not watched for in a span that is not recording', () => {
    tracer = registerTracer(new AlwaysOffSampler());
    const observer = openTelemetryObserver(api, { version: '1.2.3' });
    expect(request(() => observer.watchesDenials())).toBe(false);
  });
});

test('a tracer provider that is registered after the observer was made is used, and so is the next', async () => {
  const observer = openTelemetryObserver(api, { version: '1.2.3' });
  observer.degradedChanged({ degraded: true, forMs: undefined, error: undefined });
  for (const round of [1, 2]) {
    tracer = registerTracer();
    observer.roundTrip(LEASE, () => {})(ANSWERED);
    expect(tracer.spans(), `provider ${round}`).toHaveLength(1);
    await tracer.unregister();
  }
});

test('the numbers taken from the enums of the API are those of the API', () => {
  expect(SPAN_KIND).toEqual({ internal: api.SpanKind.INTERNAL, consumer: api.SpanKind.CONSUMER });
  expect(STATUS_ERROR).toBe(api.SpanStatusCode.ERROR);
});

describe('loadOpenTelemetry', () => {
  test('answers the API where it is installed', async () => {
    expect((await loadOpenTelemetry())?.trace).toBe(api.trace);
  });

  test('answers undefined where it is not', async () => {
    const missing = Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    expect(await loadOpenTelemetry(() => Promise.reject<OpenTelemetryApi>(missing))).toBeUndefined();
  });

  test.each<[string, () => Promise<object>]>([
    ['does not load', () => Promise.reject(new SyntaxError('torn file'))],
    ['is from before there were metrics', () => Promise.resolve({ trace: api.trace, context: api.context })],
  ])('answers undefined and warns where it is there but %s', async (_what, load) => {
    const warn = vi.spyOn(process, 'emitWarning').mockReturnValue();
    expect(await loadOpenTelemetry(load as () => Promise<OpenTelemetryApi>)).toBeUndefined();
    expect(warn.mock.calls).toEqual([
      [expect.any(String), expect.objectContaining({ code: 'HEADGATE_OPEN_TELEMETRY' })],
    ]);
    warn.mockRestore();
  });
});
