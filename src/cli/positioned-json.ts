/** A place in a text, both counted from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Names of fields and places in arrays, from the whole to the part. */
export type JsonPath = readonly (string | number)[];

/** A text is not JSON. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
  readonly position: Position;

  constructor(position: Position, expected: string, got: string) {
    super(`Expected ${expected}, got ${got}.`);
    this.position = position;
  }
}

/** A JSON text, read: its value, and where each part of it stands. */
export class PositionedJson {
  readonly value: unknown;
  readonly #text: string;
  readonly #places: Places;

  private constructor(text: string, value: unknown, places: Places) {
    this.#text = text;
    this.value = value;
    this.#places = places;
  }

  /**
   * Reads JSON (RFC 8259) in which comments, from two slashes to the end of the line or as in C, may stand wherever a
   * space may. A field that is there twice is an error: one of the two would be without effect.
   *
   * @throws JsonSyntaxError with the line and column of the first fault
   */
  static parse(text: string): PositionedJson {
    const reader = new Reader(text);
    return new PositionedJson(text, reader.document(), reader.places);
  }

  /** Where the part under `path` stands; of a part that is not there, where that stands which lacks it. */
  locate(path: JsonPath): Position {
    let value = this.value;
    let offset = this.#places.root;
    for (const part of path) {
      const next = typeof value === 'object' && value !== null ? this.#places.of.get(value)?.get(part) : undefined;
      if (next === undefined) break;
      offset = next;
      value = (value as Record<string | number, unknown>)[part];
    }
    return positionAt(this.#text, offset);
  }
}

/** Where values begin: of an object's fields, their names. */
interface Places {
  root: number;
  readonly of: Map<object, Map<string | number, number>>;
}

const MOST_LEVELS = 200;
const SPACE = /(?:[ \t\n\r]+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /[A-Za-z_$][\w$]*/y;
/** Whatever stands between quotes on one line; what of it is a string is left to `JSON.parse`. */
const STRING = /"(?:[^"\\\n]|\\.)*"/y;
const WORDS: Readonly<Record<string, boolean | null>> = { true: true, false: false, null: null };

class Reader {
  readonly places: Places = { root: 0, of: new Map() };
  readonly #text: string;
  #at = 0;
  #level = 0;

  constructor(text: string) {
    this.#text = text;
    // A byte order mark, as editors on Windows leave one.
    if (text.startsWith('\uFEFF')) this.#at = 1;
  }

  document(): unknown {
    this.#skip();
    this.places.root = this.#at;
    const value = this.#value('a JSON value');
    if (this.#at < this.#text.length) throw this.#wrong('the end of the file');
    return value;
  }

  #value(expected: string): unknown {
    const first = this.#text[this.#at];
    let value: unknown;
    if (first === '{') value = this.#deeper(() => this.#object());
    else if (first === '[') value = this.#deeper(() => this.#array());
    else if (first === '"') value = this.#string();
    else value = this.#plain(expected);
    this.#skip();
    return value;
  }

  #deeper<T>(read: () => T): T {
    if (++this.#level > MOST_LEVELS) throw this.#wrong(`at most ${MOST_LEVELS} levels of arrays and objects`);
    const value = read();
    this.#level -= 1;
    return value;
  }

  #object(): object {
    const object = {};
    const places = new Map<string, number>();
    this.places.of.set(object, places);
    this.#take();
    if (this.#text[this.#at] === '}') {
      this.#at += 1;
      return object;
    }
    for (;;) {
      if (this.#text[this.#at] !== '"') throw this.#wrong('the name of a field in double quotes');
      const nameAt = this.#at;
      const name = this.#string();
      if (places.has(name)) {
        this.#at = nameAt;
        throw this.#wrong('each field once', `${JSON.stringify(name)} twice`);
      }
      places.set(name, nameAt);
      this.#skip();
      if (this.#text[this.#at] !== ':') throw this.#wrong('":"');
      this.#take();
      // Defined, not assigned: a field "__proto__" stays a field.
      const value = this.#value('a value');
      Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
      if (this.#ends('}')) return object;
    }
  }

  #array(): unknown[] {
    const array: unknown[] = [];
    const places = new Map<number, number>();
    this.places.of.set(array, places);
    this.#take();
    if (this.#text[this.#at] === ']') {
      this.#at += 1;
      return array;
    }
    for (;;) {
      places.set(array.length, this.#at);
      array.push(this.#value('a value'));
      if (this.#ends(']')) return array;
    }
  }

  /** Whether an object or array ends here, and not only one of its parts. */
  #ends(end: '}' | ']'): boolean {
    const next = this.#text[this.#at];
    if (next !== end && next !== ',') throw this.#wrong(`"," or "${end}"`);
    if (next === end) this.#at += 1;
    else this.#take();
    return next === end;
  }

  #string(): string {
    const token = this.#match(STRING);
    if (token === undefined) throw this.#wrong('a string that ends on its line', 'none');
    try {
      return JSON.parse(token);
    } catch {
      throw this.#wrong('a string whose control characters and backslashes are escaped', token);
    } finally {
      this.#at += token.length;
    }
  }

  #plain(expected: string): unknown {
    const number = this.#match(NUMBER);
    if (number !== undefined) {
      this.#at += number.length;
      return Number(number);
    }
    const word = this.#match(WORD);
    if (word === undefined || !Object.hasOwn(WORDS, word)) throw this.#wrong(expected);
    this.#at += word.length;
    return WORDS[word];
  }

  /** Passes one character and the space after it. */
  #take(): void {
    this.#at += 1;
    this.#skip();
  }

  #skip(): void {
    this.#at += this.#match(SPACE)?.length ?? 0;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#text)?.[0];
  }

  #wrong(expected: string, got = this.#next()): JsonSyntaxError {
    return new JsonSyntaxError(positionAt(this.#text, this.#at), expected, got);
  }

  #next(): string {
    const word = this.#match(WORD);
    if (word !== undefined) return word.slice(0, 20);
    const character = this.#text.codePointAt(this.#at);
    return character === undefined ? 'the end of the file' : JSON.stringify(String.fromCodePoint(character));
  }
}

function positionAt(text: string, offset: number): Position {
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf('\n') + 1;
  return { line: before.split('\n').length, column: offset - lineStart + 1 };
}
