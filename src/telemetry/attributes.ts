import type { ATTRIBUTES, AttributeName, EVENTS, EventName, METRICS, MetricName, SPANS, SpanName } from './names.js';

interface TypeOf {
  string: string;
  'string[]': string[];
  int: number;
  double: number;
  boolean: boolean;
}

type ValueOf<Name extends AttributeName> = (typeof ATTRIBUTES)[Name] extends {
  readonly values: readonly (infer Value)[];
}
  ? Value
  : TypeOf[(typeof ATTRIBUTES)[Name]['type']];

/** Attributes of the given names, with the types and values that the table gives them. */
export type AttributesOf<Name extends AttributeName> = { readonly [N in Name]?: ValueOf<N> };

export type SpanAttributes<Span extends SpanName> = AttributesOf<(typeof SPANS)[Span]['attributes'][number]>;
export type EventAttributes<Event extends EventName> = AttributesOf<(typeof EVENTS)[Event]['attributes'][number]>;
export type MetricAttributes<Metric extends MetricName> = AttributesOf<(typeof METRICS)[Metric]['attributes'][number]>;

/** The metrics of one or more kinds of instrument. */
export type MetricOf<Instrument extends (typeof METRICS)[MetricName]['instrument']> = {
  [Name in MetricName]: (typeof METRICS)[Name]['instrument'] extends Instrument ? Name : never;
}[MetricName];
