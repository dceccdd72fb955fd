import { type ParseArgsConfig, parseArgs } from 'node:util';

/** The command line, or a file it names, is not what was expected. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

type Flags = NonNullable<ParseArgsConfig['options']>;
type Parsed<Options extends Flags> = ReturnType<
  typeof parseArgs<{ args: string[]; options: Options; allowPositionals: boolean; strict: true }>
>;

/**
 * The flags and the other words of a command line.
 *
 * @throws UsageError where a flag is not known, or lacks its value.
 */
export function parseFlags<const Options extends Flags>(
  args: readonly string[],
  options: Options,
  allowPositionals = false,
): Parsed<Options> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals, strict: true });
  } catch (error) {
    // Node's own message, without the advice that it adds to it.
    throw new UsageError(`${String((error as Error).message).split('. ')[0]}`);
  }
}

export function numberFlag(name: string, text: string | undefined, least: number, most: number): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(`Expected --${name} to be a number from ${least} to ${most}, got "${text}".`);
}

export function wholeNumberFlag(
  name: string,
  text: string | undefined,
  least: number,
  most: number,
): number | undefined {
  const value = numberFlag(name, text, least, most);
  if (value === undefined || Number.isInteger(value)) return value;
  throw new UsageError(`Expected --${name} to be a whole number, got "${text}".`);
}

export function fileFlag(name: string, text: string | undefined): string | undefined {
  if (text === '') throw new UsageError(`Expected --${name} to be the name of a file, got "".`);
  return text;
}
