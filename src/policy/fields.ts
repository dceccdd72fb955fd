import { InvalidPolicyError, show } from '../errors.js';

/**
 * The fields of one object in a policy document, each read once and only if it is the object's own: what a document
 * inherits, or answers differently the second time, can't reach a policy.
 *
 * A field that is `undefined` counts as left out. Anything else that is not as expected throws, with the path to it.
 */
export class Fields {
  readonly #values: ReadonlyMap<string, unknown>;
  /** The path as messages show it, and as it is. */
  readonly #path: string;
  readonly #names: readonly string[];
  /** Ends every message: which policy it is about. */
  readonly #about: string;

  private constructor(values: ReadonlyMap<string, unknown>, path: string, about: string, names: readonly string[]) {
    this.#values = values;
    this.#path = path;
    this.#names = names;
    this.#about = about;
  }

  /** Reads the object at `path`, such as `overrides["a"].local`; the empty path is the document itself. */
  static read(value: unknown, path: string, about: string, names: readonly string[] = []): Fields {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      const message = `Expected ${subject(path)} to be an object, got ${show(value)}.${about}`;
      throw new InvalidPolicyError(message, { path: names });
    }
    const given = Object.entries(value).filter(([, field]) => field !== undefined);
    return new Fields(new Map(given), path, about, names);
  }

  /** The same fields under messages that end with `about`. */
  named(about: string): Fields {
    return new Fields(this.#values, this.#path, about, this.#names);
  }

  /** Throws where there is a field other than `known`. */
  only(known: readonly string[]): this {
    for (const name of this.#values.keys()) {
      if (known.includes(name)) continue;
      throw new InvalidPolicyError(
        `Expected ${subject(this.#path)} to have no fields but ${known.join(', ')}, got ${show(name)}.${this.#about}`,
        { path: [...this.#names, name] },
      );
    }
    return this;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  get(name: string): unknown {
    return this.#values.get(name);
  }

  names(): IterableIterator<string> {
    return this.#values.keys();
  }

  /** The fields of the object under `name`, or `undefined` where it is left out. */
  nested(name: string): Fields | undefined {
    const value = this.#values.get(name);
    return value === undefined
      ? undefined
      : Fields.read(value, this.#pathOf(name), this.#about, [...this.#names, name]);
  }

  /** The fields of the object under `key`, in an object whose keys are free text. */
  entry(key: string): Fields {
    return Fields.read(this.#values.get(key), `${this.#path}[${show(key)}]`, this.#about, [...this.#names, key]);
  }

  /** An array of texts, or `undefined` where it is left out. */
  texts(name: string): readonly string[] | undefined {
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    // A copy, so that what is checked is what is used.
    const texts: unknown[] = Array.isArray(value) ? [...value] : [value];
    if (!Array.isArray(value) || !texts.every((text) => typeof text === 'string')) {
      throw this.wrong(name, 'an array of texts');
    }
    return texts as string[];
  }

  /** A number that passes `check`, or `undefined` where it is left out. */
  number(name: string, expected: string, check: (value: number) => boolean): number | undefined {
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !check(value)) throw this.wrong(name, expected);
    return value;
  }

  /** One of `choices`, or `undefined` where it is left out. */
  choice<T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.#values.get(name);
    const choice = choices.find((choice) => choice === value);
    if (choice === undefined && value !== undefined) {
      throw this.wrong(name, `one of ${choices.map((choice) => JSON.stringify(choice)).join(', ')}`);
    }
    return choice;
  }

  /** The error that says what `name` should have been. */
  wrong(name: string, expected: string): InvalidPolicyError {
    const got = show(this.#values.get(name));
    const message = `Expected \`${this.#pathOf(name)}\` to be ${expected}, got ${got}.${this.#about}`;
    return new InvalidPolicyError(message, { path: [...this.#names, name] });
  }

  /** The error that says what all of these fields together should have been. */
  wrongTogether(expected: string, got: string): InvalidPolicyError {
    const message = `Expected ${subject(this.#path)} to have ${expected}, got ${got}.${this.#about}`;
    return new InvalidPolicyError(message, { path: this.#names });
  }

  #pathOf(name: string): string {
    return this.#path === '' ? name : `${this.#path}.${name}`;
  }
}

function subject(path: string): string {
  return path === '' ? 'a policy' : `\`${path}\``;
}
