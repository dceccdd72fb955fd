/*
 * The part of `@opentelemetry/api` that headgate calls, by shape. The package fits it as it is; saying it by shape keeps
 * our declarations free of an import that is not installed everywhere, and lets tests and applications pass an object
 * with providers of their own instead of the global ones.
 */

/** Opaque here: `attributes.ts` types them by the table of names. */
export type Attributes = object;

/** Opaque: made and read by the API alone. */
export type Context = object;

export interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

export interface Span {
  isRecording(): boolean;
  setAttributes(attributes: Attributes): unknown;
  setStatus(status: { code: number }): unknown;
  addEvent(name: string, attributesOrTime?: Attributes | number): unknown;
  end(): void;
}

export interface SpanOptions {
  readonly kind?: number;
  readonly root?: boolean;
  readonly links?: { context: SpanContext }[];
  /** Epoch milliseconds, or a form that headgate does not use. */
  readonly startTime?: number | object;
  readonly attributes?: Attributes;
}

export interface Tracer {
  startSpan(name: string, options?: SpanOptions): Span;
}

/** Opaque: observed through {@link ObservationResult}. */
export type Observable = object;

export interface ObservationResult {
  observe(metric: Observable, value: number, attributes?: Attributes): void;
}

export interface InstrumentOptions {
  readonly unit: string;
  readonly description: string;
  readonly advice?: { readonly explicitBucketBoundaries: number[] };
}

export interface Meter {
  createCounter(name: string, options?: InstrumentOptions): { add(value: number, attributes?: Attributes): void };
  createHistogram(
    name: string,
    options?: InstrumentOptions,
  ): { record(value: number, attributes?: Attributes, context?: Context): void };
  createObservableCounter(name: string, options?: InstrumentOptions): Observable;
  createObservableUpDownCounter(name: string, options?: InstrumentOptions): Observable;
  createObservableGauge(name: string, options?: InstrumentOptions): Observable;
  addBatchObservableCallback(callback: (result: ObservationResult) => void, observables: Observable[]): void;
  removeBatchObservableCallback(callback: (result: ObservationResult) => void, observables: Observable[]): void;
}

export interface MeterProvider {
  getMeter(name: string, version: string): Meter;
}

/** What `import * as api from '@opentelemetry/api'` gives, as far as headgate needs it. */
export interface OpenTelemetryApi {
  readonly ROOT_CONTEXT: Context;
  readonly context: {
    active(): Context;
    with<T>(context: Context, run: () => T): T;
  };
  readonly trace: {
    getTracer(name: string, version: string): Tracer;
    getActiveSpan(): Span | undefined;
    setSpan(context: Context, span: Span): Context;
    getSpanContext(context: Context): SpanContext | undefined;
    isSpanContextValid(spanContext: SpanContext): boolean;
  };
  readonly metrics: {
    getMeterProvider(): MeterProvider;
  };
  readonly propagation: {
    inject(context: Context, carrier: Record<string, string>): void;
    extract(context: Context, carrier: Readonly<Record<string, string>>): Context;
  };
}

/** Numbers of the API's enums, which are part of its contract: taken as values they would need the package. */
export const SPAN_KIND = { internal: 0, consumer: 4 } as const;
export const STATUS_ERROR = 2;
