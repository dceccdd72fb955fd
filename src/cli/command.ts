import { constants } from 'node:fs';
import { access, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UsageError } from '../terminal/flags.js';

/** Where a command reads from and writes to; `process` is one. */
export interface Streams {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

/** Exit codes. */
export const EXIT = {
  ok: 0,
  /** It ran, and found something wrong: a window over its bound. */
  found: 1,
  /** The command line, or a file it names, is not what was expected. Nothing was run. */
  usage: 2,
  /** It could not be run to its end: nothing is known. */
  failed: 3,
} as const;

/** One of the things the program can do. */
export interface Command {
  /** In one line. */
  readonly summary: string;
  readonly usage: string;
  /** @returns the exit code; @throws UsageError */
  run(args: readonly string[], streams: Streams): Promise<number>;
}

/** Sees to it that a report can be written there, before the work is done that it is about. */
export async function checkReport(file: string | undefined): Promise<void> {
  if (file === undefined) return;
  await access(dirname(file), constants.W_OK).catch((cause: NodeJS.ErrnoException) => {
    throw new UsageError(`Expected --report to be a file that can be written, got "${file}" (${cause.code}).`);
  });
}

export async function writeReport(file: string, page: string): Promise<void> {
  await writeFile(file, page).catch((cause: NodeJS.ErrnoException) => {
    throw new UsageError(`Expected --report to be a file that can be written, got "${file}" (${cause.code}).`);
  });
}

export function showJson(value: unknown, { stdout }: Streams): void {
  stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}
