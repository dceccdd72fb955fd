import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { UsageError } from '../terminal/flags.js';
import { type JsonPath, JsonSyntaxError, type Position, PositionedJson } from './positioned-json.js';

/** A JSON file that a command line names, with the places of its parts for messages about them. */
export class InputFile {
  readonly name: string;
  readonly #json: PositionedJson;

  private constructor(name: string, json: PositionedJson) {
    this.name = name;
    this.#json = json;
  }

  /**
   * Reads a file; `-` is what comes in on `stdin`.
   *
   * @throws UsageError where it can't be read, or is not JSON: then with line and column.
   */
  static async read(file: string, stdin: NodeJS.ReadStream): Promise<InputFile> {
    const name = file === '-' ? 'standard input' : file;
    const content = await (file === '-' ? text(stdin) : readFile(file, 'utf8')).catch(
      (cause: NodeJS.ErrnoException) => {
        throw new UsageError(`Expected a file that can be read, got "${file}" (${cause.code}).`);
      },
    );
    try {
      return new InputFile(name, PositionedJson.parse(content));
    } catch (error) {
      if (!(error instanceof JsonSyntaxError)) throw error;
      throw new UsageError(`${place(name, error.position)}: ${error.message}`);
    }
  }

  get value(): unknown {
    return this.#json.value;
  }

  /** What is wrong with the part under `path`, after the place where it stands. */
  wrong(path: JsonPath, message: string): UsageError {
    return new UsageError(`${place(this.name, this.#json.locate(path))}: ${message}`);
  }
}

function place(name: string, { line, column }: Position): string {
  return `${name}:${line}:${column}`;
}
