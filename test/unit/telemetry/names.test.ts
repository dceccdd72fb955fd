import * as api from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ATTRIBUTES, type AttributeName, EVENTS, METRICS, SPANS } from '../../../src/telemetry/names.js';
import { openTelemetryObserver } from '../../../src/telemetry/open-telemetry.js';
import { everythingHappens, KEY } from './scenario.js';
import { apiWith, Meters, type Point, registerTracer } from './sdk.js';

const KIND = { internal: api.SpanKind.INTERNAL, consumer: api.SpanKind.CONSUMER };

describe('what is emitted where everything happens once', () => {
  let tracer: ReturnType<typeof registerTracer>;
  let spans: ReadableSpan[];
  let points: Point[];

  beforeEach(async () => {
    tracer = registerTracer();
    const meters = new Meters();
    everythingHappens(
      openTelemetryObserver(
        apiWith(() => meters.provider),
        { version: '1.2.3' },
      ),
    );
    points = await meters.points();
    spans = tracer.spans().filter((span) => span.instrumentationScope.name === 'headgate');
    await meters.provider.shutdown();
  });
  afterEach(() => tracer.unregister());

  test('is every span of the table with every attribute of its row, and no other', () => {
    expect(attributesByName(spans)).toEqual(attributesInTable(SPANS));
    for (const span of spans) {
      expect(span.kind).toBe(KIND[SPANS[span.name as keyof typeof SPANS].kind]);
      expect(span.instrumentationScope.version).toBe('1.2.3');
    }
  });

  test('is every event of the table with every attribute of its row, and no other', () => {
    const events = tracer.spans().flatMap((span) => span.events);
    expect(attributesByName(events.map(({ name, attributes = {} }) => ({ name, attributes })))).toEqual(
      attributesInTable(EVENTS),
    );
  });

  test('is every metric of the table with its unit, description and attributes, and no other', () => {
    expect(attributesByName(points.map(({ metric, attributes }) => ({ name: metric, attributes })))).toEqual(
      attributesInTable(METRICS),
    );
    for (const { metric, unit, description } of points) {
      expect({ metric, unit, description }).toMatchObject({
        metric,
        unit: METRICS[metric as keyof typeof METRICS].unit,
        description: METRICS[metric as keyof typeof METRICS].description,
      });
    }
  });

  test('has only attributes of the type and values that the table gives', () => {
    const all = [...spans, ...tracer.spans().flatMap((span) => span.events), ...points].flatMap(({ attributes = {} }) =>
      Object.entries(attributes),
    );
    for (const [name, value] of all) {
      const row: { type: string; values?: readonly string[] } = ATTRIBUTES[name as AttributeName];
      expect(typeOf(value), name).toBe(row.type === 'int' || row.type === 'double' ? 'number' : row.type);
      if (row.values) expect(row.values).toContain(value);
    }
  });

  test('never says a key, not even one that an error message quotes', () => {
    const everything = JSON.stringify([
      points,
      tracer.spans().map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
    ]);
    expect(everything).toContain('headgate.denied');
    expect(everything).not.toContain(KEY);
  });
});

describe('the names', () => {
  const names = [...Object.keys(METRICS), ...Object.keys(EVENTS), ...Object.keys(ATTRIBUTES)];

  test.each(names)('%s follows the naming rules of OpenTelemetry', (name) => {
    expect(name).toMatch(/^[a-z][a-z0-9]*([._][a-z0-9]+)*$/);
    expect(name).not.toMatch(/_total$|^otel\./);
  });

  test('say what an instrument is: counters in the plural, up-down counters `.count`, histograms `.duration` in seconds', () => {
    for (const [name, row] of Object.entries(METRICS)) {
      if (row.instrument.endsWith('up-down counter')) expect(name).toMatch(/\.count$/);
      else if (row.instrument.endsWith('counter')) expect(name).toMatch(/s$/);
      if (row.instrument === 'histogram') {
        expect(name).toMatch(/\.duration$/);
        expect(row.unit).toBe('s');
        expect(row.boundaries).toEqual([...row.boundaries].sort((a, b) => a - b));
      }
    }
  });

  test('of attributes are never the namespace of another', () => {
    const attributes = Object.keys(ATTRIBUTES);
    for (const name of attributes) expect(attributes.filter((other) => other.startsWith(`${name}.`))).toEqual([]);
  });

  test('of attributes are all used by something', () => {
    const rows = [...Object.values(SPANS), ...Object.values(EVENTS), ...Object.values(METRICS)];
    const used = new Set<string>(rows.flatMap((row) => [...row.attributes]));
    expect([...used].sort()).toEqual(Object.keys(ATTRIBUTES).sort());
  });
});

function attributesByName(emitted: Iterable<{ name: string; attributes: object }>): Record<string, string[]> {
  const byName: Record<string, Set<string>> = {};
  for (const { name, attributes } of emitted) {
    byName[name] ??= new Set();
    for (const attribute of Object.keys(attributes)) byName[name].add(attribute);
  }
  return Object.fromEntries(Object.entries(byName).map(([name, seen]) => [name, [...seen].sort()]));
}

function attributesInTable(table: Record<string, { attributes: readonly string[] }>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(table).map(([name, row]) => [name, [...row.attributes].sort()]));
}

function typeOf(value: unknown): string {
  return Array.isArray(value) ? `${typeof value[0]}[]` : typeof value;
}
