import type { Time, Timer } from '../time.js';
import type { Milliseconds } from '../units.js';
import type { MetricAttributes, MetricOf } from './attributes.js';
import { METRICS, type MetricName } from './names.js';
import type { Readings } from './observer.js';
import type {
  Attributes,
  Context,
  InstrumentOptions,
  Meter,
  MeterProvider,
  Observable,
  ObservationResult,
  OpenTelemetryApi,
} from './open-telemetry-api.js';
import { type PolicyTotals, TotalsByPolicy } from './totals.js';

type RecordedMetric = MetricOf<'counter' | 'histogram'>;
type ObservedMetric = Exclude<MetricName, RecordedMetric>;
type Observe = <Name extends ObservedMetric>(metric: Name, value: number, attributes: MetricAttributes<Name>) => void;
type Recorder = (value: number, attributes: Attributes, context?: Context) => void;

/** How long a limiter that nothing else happens to may go without noticing a new meter provider. */
const REBIND_MS: Milliseconds = 5_000;

/**
 * The metric instruments of one process: made once for all its limiters, since two observers of the same instrument
 * with the same attributes overwrite each other, and limiters can't be told apart by an attribute without giving each
 * object a series of its own. So what they read adds up by policy.
 *
 * An instrument made before the application registers its meter provider stays silent for ever. So {@link rebind}, which
 * costs a comparison while nothing has changed, is called wherever something happens off the path of decisions, and now
 * and then while readings are attached; when it sees another provider, it makes all instruments anew there.
 */
export class Instruments {
  /** By the API's singleton, which is the same however the module was imported. */
  static readonly #byMetricsApi = new WeakMap<object, Instruments>();

  static of(api: OpenTelemetryApi, version: string, time: Time): Instruments {
    let instruments = Instruments.#byMetricsApi.get(api.metrics);
    if (!instruments) {
      instruments = new Instruments(api, version, time);
      Instruments.#byMetricsApi.set(api.metrics, instruments);
    }
    return instruments;
  }

  readonly #api: OpenTelemetryApi;
  readonly #version: string;
  readonly #time: Time;
  readonly #totals = new TotalsByPolicy();
  readonly #observables = new Map<MetricName, Observable>();
  readonly #recorders = new Map<MetricName, Recorder>();
  #provider: MeterProvider | undefined;
  #meter: Meter | undefined;
  #nextRebind: Timer | undefined;

  private constructor(api: OpenTelemetryApi, version: string, time: Time) {
    this.#api = api;
    this.#version = version;
    this.#time = time;
  }

  record<Name extends RecordedMetric>(
    metric: Name,
    value: number,
    attributes: MetricAttributes<Name>,
    context?: Context,
  ): void {
    this.rebind();
    this.#recorders.get(metric)?.(value, attributes, context);
  }

  attach(readings: Readings): () => void {
    this.#totals.add(readings);
    this.#scheduleRebind();
    this.rebind();
    return () => {
      try {
        this.#totals.remove(readings);
      } finally {
        if (this.#totals.empty) {
          this.#nextRebind?.cancel();
          this.#nextRebind = undefined;
        }
      }
    };
  }

  rebind(): void {
    const provider = this.#api.metrics.getMeterProvider();
    if (provider === this.#provider) return;
    // Before anything that may throw: a provider that can't make instruments is not asked again on every round trip.
    this.#provider = provider;
    this.#unbind();
    this.#bind(provider.getMeter('headgate', this.#version));
  }

  #scheduleRebind(): void {
    this.#nextRebind ??= this.#time.after(REBIND_MS, () => {
      this.#nextRebind = undefined;
      this.#scheduleRebind();
      try {
        this.rebind();
      } catch {
        // A provider that can't make instruments leaves this limiter without metrics, and the process as it was.
      }
    });
  }

  #bind(meter: Meter): void {
    for (const [name, row] of Object.entries(METRICS) as [MetricName, (typeof METRICS)[MetricName]][]) {
      const options: InstrumentOptions = { unit: row.unit, description: row.description };
      if (row.instrument === 'histogram') {
        const advice = { explicitBucketBoundaries: [...row.boundaries] };
        const histogram = meter.createHistogram(name, { ...options, advice });
        this.#recorders.set(name, histogram.record.bind(histogram));
      } else if (row.instrument === 'counter') {
        const counter = meter.createCounter(name, options);
        this.#recorders.set(name, counter.add.bind(counter));
      } else if (row.instrument === 'observable counter') {
        this.#observables.set(name, meter.createObservableCounter(name, options));
      } else if (row.instrument === 'observable up-down counter') {
        this.#observables.set(name, meter.createObservableUpDownCounter(name, options));
      } else {
        this.#observables.set(name, meter.createObservableGauge(name, options));
      }
    }
    meter.addBatchObservableCallback(this.#observe, [...this.#observables.values()]);
    this.#meter = meter;
  }

  #unbind(): void {
    const meter = this.#meter;
    const observables = [...this.#observables.values()];
    this.#meter = undefined;
    this.#recorders.clear();
    this.#observables.clear();
    try {
      meter?.removeBatchObservableCallback(this.#observe, observables);
    } catch {
      // The old provider is gone; its trouble must not keep the new one from being used.
    }
  }

  /** Called by the SDK at each collection. */
  readonly #observe = (result: ObservationResult): void => {
    try {
      for (const [policy, totals] of this.#totals.read()) {
        observeTotals(policy, totals, (metric, value, attributes) => {
          const observable = this.#observables.get(metric);
          if (observable) result.observe(observable, value, attributes);
        });
      }
    } catch {
      // One collection is lost. Thrown into the SDK, it could cost the application's own metrics too.
    }
  };
}

/** Zeros are reported too: an alert on a rate needs the first increment, and "none" must not look like "no data". */
function observeTotals(policy: string, totals: PolicyTotals, observe: Observe): void {
  const byPolicy = { 'headgate.policy.name': policy };
  const decided = (outcome: 'allowed' | 'allowed_degraded' | 'shadow_denied', count: number): void =>
    observe('headgate.decisions', count, { ...byPolicy, 'headgate.decision.outcome': outcome });
  const denied = (limitedBy: 'local' | 'ceiling' | 'policy', count: number): void =>
    observe('headgate.decisions', count, {
      ...byPolicy,
      'headgate.decision.outcome': 'denied',
      'headgate.decision.limited_by': limitedBy,
    });
  const entered = (outcome: 'allowed' | 'shadow_denied' | 'denied', count: number): void =>
    observe('headgate.seat.requests', count, { ...byPolicy, 'headgate.decision.outcome': outcome });
  const called = (outcome: 'answered' | 'failed' | 'refused', count: number): void =>
    observe('headgate.lease.calls', count, { ...byPolicy, 'headgate.lease.outcome': outcome });

  decided('allowed', Math.max(0, totals.allowed - totals.allowedDegraded - totals.shadowDenied));
  decided('allowed_degraded', totals.allowedDegraded);
  decided('shadow_denied', totals.shadowDenied);
  denied('local', totals.deniedLocal);
  denied('ceiling', totals.deniedCeiling);
  denied('policy', totals.deniedPolicy);
  called('answered', Math.max(0, totals.leaseCalls - totals.leaseFailures - totals.leaseRefusals));
  called('failed', totals.leaseFailures);
  called('refused', totals.leaseRefusals);
  observe('headgate.overflow.decisions', totals.overflow, byPolicy);
  observe('headgate.blocked.decisions', totals.deniedBlocked, byPolicy);
  observe('headgate.granted.tokens', totals.tokensGranted, byPolicy);
  observe('headgate.spent.tokens', totals.tokensSpent, byPolicy);
  observe('headgate.returned.tokens', totals.tokensReturned, byPolicy);
  observe('headgate.expired.tokens', totals.tokensExpired, byPolicy);
  observe('headgate.unleased.tokens', totals.tokensUnleased, byPolicy);
  observe('headgate.policy.conflicts', totals.termConflicts, byPolicy);
  entered('allowed', totals.seatsTaken);
  entered('shadow_denied', totals.seatsShadowRefused);
  entered('denied', totals.seatsRefused);
  observe('headgate.held.seat.count', totals.seats, byPolicy);
  observe('headgate.held.token.count', totals.tokensHeld, byPolicy);
  observe('headgate.key.count', totals.keys, byPolicy);
  observe('headgate.waiter.count', totals.waiting, byPolicy);
  observe('headgate.blocked.key.count', totals.blocked, byPolicy);
  observe('headgate.degraded.count', totals.degradedLimiters, byPolicy);
  if (totals.version !== undefined) observe('headgate.policy.version', totals.version, byPolicy);
}
