import { InvalidOptionError, type InvalidPolicyError, show } from '../errors.js';
import { type Milliseconds, periodMs } from '../units.js';

/** A scenario is not what was expected. `path` leads to the fault: names of fields and places in arrays. */
export class InvalidScenarioError extends InvalidOptionError {
  readonly path: readonly (string | number)[];

  /** @param within leads on from `path`, which the message names, to the part of it that is at fault. */
  constructor(
    path: readonly (string | number)[],
    expected: string,
    got: string,
    within: readonly (string | number)[] = [],
    options?: ErrorOptions,
  ) {
    super(
      `Expected ${path.length === 0 ? 'a scenario' : `\`${pathText(path)}\``} to be ${expected}, got ${got}.`,
      options,
    );
    this.path = [...path, ...within];
  }

  /** What stands under `path` is no policy. */
  static ofPolicy(path: readonly (string | number)[], cause: InvalidPolicyError): InvalidScenarioError {
    return new InvalidScenarioError(path, 'a policy', `one that is not: ${cause.message}`, cause.path, { cause });
  }
}

/** The fields of one object of a scenario. A field that is `undefined` counts as left out. */
export class ScenarioFields {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly path: readonly (string | number)[];

  constructor(value: unknown, path: readonly (string | number)[], known: readonly string[]) {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw new InvalidScenarioError(path, 'an object', show(value));
    this.#fields = value as Record<string, unknown>;
    this.path = path;
    for (const [name, field] of Object.entries(value)) {
      if (field !== undefined && !known.includes(name))
        throw new InvalidScenarioError(path, `an object with no fields but ${known.join(', ')}`, show(name), [name]);
    }
  }

  get(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined;
  }

  wrong(name: string, expected: string): InvalidScenarioError {
    return new InvalidScenarioError([...this.path, name], expected, show(this.get(name)));
  }

  text(name: string, fallback: string): string {
    const value = this.get(name) ?? fallback;
    if (typeof value !== 'string' || value === '') throw this.wrong(name, 'a non-empty text');
    return value;
  }

  number(name: string, fallback: number | undefined, expected: string, fits: (value: number) => boolean): number {
    const value = this.get(name) ?? fallback;
    if (typeof value !== 'number' || !Number.isFinite(value) || !fits(value)) throw this.wrong(name, expected);
    return value;
  }

  whole(name: string, fallback: number | undefined, least: number, most: number): number {
    const expected = `a whole number from ${least} to ${most}`;
    return this.number(name, fallback, expected, (n) => Number.isSafeInteger(n) && n >= least && n <= most);
  }

  /** A span or moment; `least` is 0 or, for what must take time, the smallest number above it. */
  period(name: string, fallback: Milliseconds | undefined, mayBeZero: boolean): Milliseconds {
    const value = this.get(name) ?? fallback;
    if (mayBeZero && value === 0) return 0;
    const ms = periodMs(value);
    if (ms === undefined) throw this.wrong(name, "a time such as '500ms', '30s', '5m', or a number of ms");
    return ms;
  }

  choice<T extends string>(name: string, choices: readonly T[], fallback: T): T {
    const value = this.get(name) ?? fallback;
    const choice = choices.find((choice) => choice === value);
    if (choice === undefined)
      throw this.wrong(name, `one of ${choices.map((choice) => JSON.stringify(choice)).join(', ')}`);
    return choice;
  }

  list(name: string, expected: string): readonly unknown[] {
    const value = this.get(name);
    if (!Array.isArray(value) || value.length === 0) throw this.wrong(name, expected);
    return value;
  }
}

function pathText(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? part : `${text}.${part}`;
  }, '');
}
