import { systemTime, type Time } from '../time.js';
import type { Milliseconds, Tokens } from '../units.js';
import type { EventAttributes, SpanAttributes } from './attributes.js';
import { errorType } from './error-type.js';
import { guardedObserver } from './guarded-observer.js';
import { Instruments } from './instruments.js';
import { type EventName, POLICY_DESTINATION, SPANS, type SpanName } from './names.js';
import type {
  DegradedChange,
  DenialNote,
  Observer,
  PolicyChange,
  Readings,
  RoundTripEnd,
  RoundTripStart,
} from './observer.js';
import {
  type OpenTelemetryApi,
  SPAN_KIND,
  type Span,
  type SpanContext,
  type SpanOptions,
  STATUS_ERROR,
} from './open-telemetry-api.js';

export interface OpenTelemetryOptions {
  /** Version of this package: the scope of all spans and instruments is `headgate` and this. */
  readonly version: string;
  /** What carries policy changes: `messaging.system` of their spans. Default: `nats`. */
  readonly messagingSystem?: string;
  readonly time?: Time;
}

/**
 * An observer that tells OpenTelemetry through its API: nothing happens, at next to no cost, until the application
 * registers a tracer or meter provider, which it may do before or after. It never throws.
 */
export function openTelemetryObserver(api: OpenTelemetryApi, options: OpenTelemetryOptions): Observer {
  return guardedObserver(new OpenTelemetryObserver(api, options));
}

/** `@opentelemetry/api`, or `undefined` where it is not installed. Never rejects. */
export async function loadOpenTelemetry(
  load: () => Promise<OpenTelemetryApi> = () => import('@opentelemetry/api'),
): Promise<OpenTelemetryApi | undefined> {
  try {
    const api = await load();
    if (!('metrics' in api)) throw new TypeError('Expected a version with metrics (^1.9.0), got an older one.');
    return api;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return undefined;
    // Installed but broken, or of another age. That is worth a word, but a limiter must not fail to start over its telemetry.
    process.emitWarning('The package "@opentelemetry/api" is installed but of no use: there is no telemetry.', {
      type: 'HeadgateWarning',
      code: 'HEADGATE_OPEN_TELEMETRY',
      detail: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    return undefined;
  }
}

class OpenTelemetryObserver implements Observer {
  readonly #api: OpenTelemetryApi;
  readonly #version: string;
  readonly #messagingSystem: string;
  readonly #time: Time;
  readonly #instruments: Instruments;

  constructor(api: OpenTelemetryApi, options: OpenTelemetryOptions) {
    this.#api = api;
    this.#version = options.version;
    this.#messagingSystem = options.messagingSystem ?? 'nats';
    this.#time = options.time ?? systemTime;
    this.#instruments = Instruments.of(api, options.version, this.#time);
  }

  roundTrip(start: RoundTripStart, send: () => void): (end: RoundTripEnd) => void {
    const { trace, context, ROOT_CONTEXT } = this.#api;
    // A root in an empty context: the round trip serves many requests, and whichever of them (or whichever timer) happened
    // to start it must not become the parent of it and of the Redis spans below it.
    const span = this.#startSpan(
      'headgate.lease',
      {
        'headgate.policy.names': [...start.policies],
        'headgate.lease.call_count': start.calls,
        'headgate.lease.needed_tokens': start.need,
        'headgate.lease.wanted_tokens': start.want,
      },
      { root: true },
    );
    const within = trace.setSpan(ROOT_CONTEXT, span);
    context.with(within, send);
    return (end) => {
      const failure = end.error !== undefined || end.failed > 0 ? { 'error.type': errorType(end.error) } : undefined;
      try {
        this.#instruments.record('headgate.lease.duration', end.durationMs / 1_000, failure ?? {}, within);
      } finally {
        endSpan<'headgate.lease'>(
          span,
          { 'headgate.lease.granted_tokens': end.granted, 'headgate.lease.failed_count': end.failed, ...failure },
          failure !== undefined,
        );
      }
    };
  }

  policyChanged(change: PolicyChange): void {
    const { policy, outcome, via, lagMs } = change;
    try {
      this.#instruments.record('headgate.policy.changes', 1, {
        'headgate.policy.name': policy,
        'headgate.policy.outcome': outcome,
        'headgate.policy.via': via,
      });
      // A snapshot is as old as the policy, and says nothing of how fast changes travel. Below zero is clock skew.
      if (outcome === 'applied' && (via === 'watch' || via === 'hint') && lagMs !== undefined) {
        const seconds = Math.max(0, lagMs) / 1_000;
        this.#instruments.record('headgate.policy.propagation.duration', seconds, { 'headgate.policy.name': policy });
      }
    } finally {
      if (outcome !== 'ignored') this.#policySpan(change);
    }
  }

  #policySpan(change: PolicyChange): void {
    const attributes = {
      'headgate.policy.name': change.policy,
      'headgate.policy.version': change.version,
      'headgate.policy.outcome': change.outcome,
      'headgate.policy.via': change.via,
      ...(change.previousVersion !== undefined && { 'headgate.policy.previous_version': change.previousVersion }),
      ...(change.error && { 'error.type': errorType(change.error) }),
    };
    const publisher = this.#publisherOf(change);
    const span =
      change.via === 'code'
        ? this.#startSpan('headgate.policy.change', attributes)
        : this.#startSpan(
            `process ${POLICY_DESTINATION}`,
            {
              ...attributes,
              'messaging.system': this.#messagingSystem,
              'messaging.operation.name': 'process',
              'messaging.operation.type': 'process',
              'messaging.destination.template': POLICY_DESTINATION,
              'messaging.destination.name': POLICY_DESTINATION.replace('{policy}', () => change.policy),
            },
            // Linked, not a child: one publish reaches the whole fleet, and its trace must not grow a span per instance.
            { root: true, links: publisher ? [{ context: publisher }] : [] },
          );
    endSpan(span, {}, change.error !== undefined);
  }

  #publisherOf(change: PolicyChange): SpanContext | undefined {
    if (!change.trace) return undefined;
    const { trace, propagation, ROOT_CONTEXT } = this.#api;
    const spanContext = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, change.trace));
    return spanContext && trace.isSpanContextValid(spanContext) ? spanContext : undefined;
  }

  degradedChanged(change: DegradedChange): void {
    if (change.degraded) {
      const failure = change.error && { 'error.type': errorType(change.error) };
      const span = this.#startSpan('headgate.degraded.begin', { ...failure }, { root: true });
      endSpan(span, {}, true);
      return;
    }
    // As long as the outage, so that it shows on a time line; made only now, as a span left open is lost with the process.
    const startTime = this.#time.wallNow() - (change.forMs ?? 0);
    endSpan(this.#startSpan('headgate.degraded.end', {}, { root: true, startTime }), {}, false);
  }

  watchesDenials(): boolean {
    return this.#api.trace.getActiveSpan()?.isRecording() === true;
  }

  denied(note: DenialNote): void {
    const span = this.#api.trace.getActiveSpan();
    if (!span) return;
    addEvent(span, 'headgate.denied', {
      'headgate.policy.name': note.policy,
      'headgate.policy.version': note.policyVersion,
      'headgate.decision.limited_by': note.limitedBy,
      'headgate.decision.reason': note.reason,
      'headgate.decision.cost': note.cost,
      'headgate.decision.shadow': note.shadow,
      ...(note.retryAfterMs !== undefined && { 'headgate.decision.retry_after': note.retryAfterMs / 1_000 }),
    });
  }

  waiting(policy: string, cost: Tokens): (outcome: 'allowed' | 'denied' | 'aborted') => void {
    const began: Milliseconds = this.#time.now();
    const caller = this.#api.context.active();
    const span = this.#startSpan('headgate.wait', { 'headgate.policy.name': policy, 'headgate.decision.cost': cost });
    return (outcome) => {
      try {
        const seconds = (this.#time.now() - began) / 1_000;
        const attributes = { 'headgate.policy.name': policy, 'headgate.wait.outcome': outcome };
        this.#instruments.record('headgate.wait.duration', seconds, attributes, caller);
      } finally {
        // A denial is an answer, not an error: the status stays unset.
        endSpan<'headgate.wait'>(span, { 'headgate.wait.outcome': outcome }, false);
      }
    };
  }

  trouble(error: Error): void {
    this.#instruments.record('headgate.troubles', 1, { 'error.type': errorType(error) });
  }

  inject(): Readonly<Record<string, string>> {
    const carrier: Record<string, string> = {};
    this.#api.propagation.inject(this.#api.context.active(), carrier);
    return carrier;
  }

  attach(readings: Readings): () => void {
    return this.#instruments.attach(readings);
  }

  /** Asks for the tracer each time: off the path of decisions, and so a provider that comes late or anew is used. */
  #startSpan<Name extends SpanName>(
    name: Name,
    attributes: SpanAttributes<Name>,
    options: Pick<SpanOptions, 'root' | 'links' | 'startTime'> = {},
  ): Span {
    const tracer = this.#api.trace.getTracer('headgate', this.#version);
    // The spread comes last: before other properties it costs V8 more than all the rest of a span without a provider.
    return tracer.startSpan(name, { kind: SPAN_KIND[SPANS[name].kind], attributes, ...options });
  }
}

function endSpan<Name extends SpanName>(span: Span, attributes: SpanAttributes<Name>, failed: boolean): void {
  try {
    span.setAttributes(attributes);
    if (failed) span.setStatus({ code: STATUS_ERROR });
  } finally {
    span.end();
  }
}

function addEvent<Name extends EventName>(span: Span, name: Name, attributes: EventAttributes<Name>): void {
  span.addEvent(name, attributes);
}
