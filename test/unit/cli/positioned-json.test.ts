import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonSyntaxError, PositionedJson } from '../../../src/cli/positioned-json.js';

function faultOf(text: string): JsonSyntaxError {
  try {
    PositionedJson.parse(text);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return error;
    throw error;
  }
  throw new Error(`Expected a fault in ${text}.`);
}

describe('JSON with positions', () => {
  it('reads what JSON.parse reads, as JSON.parse does', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), fc.integer({ min: 0, max: 4 }), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        expect(PositionedJson.parse(text).value).toEqual(JSON.parse(text));
      }),
    );
  });

  it('refuses what JSON.parse refuses, wherever a character is lost, doubled or another', () => {
    const change = fc.record({
      at: fc.nat(),
      put: fc.constantFrom('', '"', '{', '}', '[', ']', ',', ':', '0', '\\', 'n', '\u0001'),
    });
    fc.assert(
      fc.property(fc.jsonValue(), change, (value, { at, put }) => {
        const good = JSON.stringify(value);
        const place = at % good.length;
        const text = good.slice(0, place) + put + good.slice(place + 1);
        let expected: unknown;
        try {
          expected = JSON.parse(text);
        } catch {
          expect(faultOf(text).position.line).toBe(1);
          return;
        }
        try {
          expect(PositionedJson.parse(text).value).toEqual(expected);
        } catch (error) {
          // The one thing that JSON.parse lets pass.
          expect((error as Error).message).toContain('each field once');
        }
      }),
      { numRuns: 500 },
    );
  });

  it('finds every part of a value where it stands', () => {
    const document = fc.dictionary(fc.string(), fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 3 }));
    fc.assert(
      fc.property(document, (value) => {
        const text = JSON.stringify(value, undefined, 2);
        const lines = text.split('\n');
        const json = PositionedJson.parse(text);
        for (const [name, list] of Object.entries(value)) {
          const { line, column } = json.locate([name]);
          expect(lines[line - 1]?.slice(column - 1).startsWith(`${JSON.stringify(name)}: `)).toBe(true);
          for (const [place, item] of list.entries()) {
            const at = json.locate([name, place]);
            const first = JSON.stringify(item, undefined, 2).split('\n')[0] as string;
            expect(lines[at.line - 1]?.slice(at.column - 1).startsWith(first)).toBe(true);
          }
        }
      }),
    );
  });

  it('takes comments for space, but not within a string', () => {
    const { value } = PositionedJson.parse('// first\n{ "a": /* one */ 1, // then\n "b": "// two" }\n/* last */');
    expect(value).toEqual({ a: 1, b: '// two' });
  });

  it('finds for a part that is not there what lacks it', () => {
    const json = PositionedJson.parse('{\n  "fleet": [\n    { "instances": 2 }\n  ]\n}');
    expect(json.locate(['fleet', 0, 'traffic', 'rate'])).toEqual({ line: 3, column: 5 });
    expect(json.locate(['fleet', 7])).toEqual({ line: 2, column: 3 });
    expect(json.locate(['none'])).toEqual({ line: 1, column: 1 });
  });

  it.each<[string, number, number, string]>([
    ['', 1, 1, 'Expected a JSON value, got the end of the file.'],
    ['{\n  "a": 1\n  "b": 2\n}', 3, 3, 'Expected "," or "}", got "\\"".'],
    ['{\n  "a": 1,\n}', 3, 1, 'Expected the name of a field in double quotes, got "}".'],
    ['{ a: 1 }', 1, 3, 'Expected the name of a field in double quotes, got a.'],
    ['[1, 2', 1, 6, 'Expected "," or "]", got the end of the file.'],
    ['{"a" 1}', 1, 6, 'Expected ":", got "1".'],
    ['[True]', 1, 2, 'Expected a value, got True.'],
    ['{"a": 1, "a": 2}', 1, 10, 'Expected each field once, got "a" twice.'],
    ['"open', 1, 1, 'Expected a string that ends on its line, got none.'],
    ['{} x', 1, 4, 'Expected the end of the file, got x.'],
    ['/* open', 1, 1, 'Expected a JSON value, got "/".'],
  ])('says of %j that at %i:%i: %s', (text, line, column, message) => {
    expect(faultOf(text)).toMatchObject({ position: { line, column }, message });
  });

  it('does not run out of stack on what is nested beyond reason', () => {
    expect(faultOf('['.repeat(100_000)).message).toContain('at most 200 levels');
  });

  it('keeps "__proto__" a field', () => {
    const value = PositionedJson.parse('{"__proto__": {"a": 1}}').value as object;
    expect(Object.keys(value)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });
});
