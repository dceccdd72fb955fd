import * as api from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';
import type { PolicyCounters, PolicyGauges, Readings } from '../../../src/telemetry/observer.js';
import type { OpenTelemetryApi } from '../../../src/telemetry/open-telemetry-api.js';

/** One value of a metric, as exported. */
export interface Point {
  readonly metric: string;
  readonly unit: string;
  readonly description: string;
  readonly attributes: api.Attributes;
  readonly value: unknown;
}

export class Meters {
  readonly #exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly provider = new MeterProvider({
    readers: [new PeriodicExportingMetricReader({ exporter: this.#exporter, exportIntervalMillis: 3_600_000 })],
  });

  async points(): Promise<Point[]> {
    this.#exporter.reset();
    await this.provider.forceFlush();
    return this.#exporter.getMetrics().flatMap(({ scopeMetrics }) =>
      scopeMetrics.flatMap(({ metrics }) =>
        metrics.flatMap(({ descriptor, dataPoints }) =>
          dataPoints.map(({ attributes, value }) => ({
            metric: descriptor.name,
            unit: descriptor.unit,
            description: descriptor.description,
            attributes,
            value,
          })),
        ),
      ),
    );
  }

  /** The value of the one point that has all these attributes and more or less, `undefined` where there is none. */
  async value(metric: string, attributes: api.Attributes): Promise<unknown> {
    const wanted = Object.entries(attributes);
    return (await this.points()).find(
      (point) => point.metric === metric && wanted.every(([name, value]) => point.attributes[name] === value),
    )?.value;
  }
}

/** Registers a real tracer provider, context manager and W3C propagator as the global ones. */
export function registerTracer(sampler?: Sampler): { spans(): ReadableSpan[]; unregister(): Promise<void> } {
  const exporter = new InMemorySpanExporter();
  const provider = new NodeTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(exporter)],
    ...(sampler && { sampler }),
  });
  provider.register();
  return {
    spans: () => exporter.getFinishedSpans(),
    async unregister() {
      for (const part of [api.trace, api.context, api.propagation]) part.disable();
      await provider.shutdown();
    },
  };
}

/** The API with a meter provider of its own: its instruments are nobody else's. */
export function apiWith(provider: () => api.MeterProvider): OpenTelemetryApi {
  return { ...api, metrics: { getMeterProvider: provider } };
}

export function counters(policy: string, counts: Partial<PolicyCounters> = {}): PolicyCounters {
  return {
    policy,
    allowed: 0,
    allowedDegraded: 0,
    deniedLocal: 0,
    deniedCeiling: 0,
    deniedPolicy: 0,
    deniedBlocked: 0,
    seatsTaken: 0,
    seatsRefused: 0,
    seatsShadowRefused: 0,
    shadowDenied: 0,
    overflow: 0,
    tokensGranted: 0,
    tokensSpent: 0,
    tokensReturned: 0,
    tokensExpired: 0,
    tokensUnleased: 0,
    leaseCalls: 0,
    leaseFailures: 0,
    leaseRefusals: 0,
    termConflicts: 0,
    ...counts,
  };
}

export function readings(counts: Partial<PolicyCounters>, state: Partial<PolicyGauges> = {}): Readings {
  const policy = counts.policy ?? 'api';
  const gauges: PolicyGauges = {
    policy,
    version: 1,
    tokensHeld: 0,
    keys: 0,
    waiting: 0,
    seats: 0,
    blocked: 0,
    degraded: false,
    ...state,
  };
  return { instanceId: 'web-7', counters: () => [counters(policy, counts)], gauges: () => [gauges] };
}
