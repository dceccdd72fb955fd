import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ATTRIBUTES, EVENTS, METRICS, SPANS } from '../../../src/telemetry/names.js';

const PAGE = readFileSync(new URL('../../../docs/reference/telemetry.md', import.meta.url), 'utf8');

describe('docs/reference/telemetry.md', () => {
  test('lists exactly the metrics of the table, with their instrument, unit and attributes', () => {
    expect(
      rowsOf('Metrics').map(([name, instrument, unit, attributes]) => [name, instrument, unit, list(attributes)]),
    ).toEqual(
      Object.entries(METRICS).map(([name, row]) => [quote(name), row.instrument, quote(row.unit), row.attributes]),
    );
  });

  test('lists exactly the spans of the table, with their kind and attributes', () => {
    expect(rowsOf('Spans').map(([name, kind, attributes]) => [name, kind, list(attributes)])).toEqual(
      Object.entries(SPANS).map(([name, row]) => [quote(name), row.kind, row.attributes]),
    );
  });

  test('lists exactly the events of the table, with their attributes', () => {
    expect(rowsOf('Events').map(([name, attributes]) => [name, list(attributes)])).toEqual(
      Object.entries(EVENTS).map(([name, row]) => [quote(name), row.attributes]),
    );
  });

  test('lists exactly the attributes of the table, with their type and values', () => {
    expect(rowsOf('Attributes').map(([name, type, values]) => [name, type, list(values)])).toEqual(
      Object.entries(ATTRIBUTES).map(([name, row]) => [quote(name), row.type, 'values' in row ? row.values : []]),
    );
  });

  test('names nothing that is not in the tables, in its text and its alerts', () => {
    const known = new Set([ATTRIBUTES, EVENTS, METRICS, SPANS].flatMap((table) => Object.keys(table)));
    const named = [...PAGE.matchAll(/`((?:process )?headgate\.[^`]+|messaging\.[^`]+|error\.type)`/g)].map(
      ([, name]) => name,
    );
    expect(named.length).toBeGreaterThan(100);
    expect(named.filter((name) => !known.has(name as string) && name !== 'headgate.policy.{policy}')).toEqual([]);
  });

  test('has an alert only on what is exported', () => {
    for (const [alert] of rowsOf('At three in the morning'))
      expect(list(alert)[0]).toSatisfy((name: string) => name in METRICS);
  });
});

/** The cells of the first table under a heading, without its head. */
function rowsOf(heading: string): string[][] {
  const section = PAGE.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('|'));
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

function list(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string);
}

function quote(name: string): string {
  return `\`${name}\``;
}
