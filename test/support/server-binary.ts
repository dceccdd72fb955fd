import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const VARIABLES = { 'redis-server': 'HEADGATE_TEST_REDIS', 'nats-server': 'HEADGATE_TEST_NATS' } as const;

export type ServerBinary = keyof typeof VARIABLES;

/** Path of a server to run, or undefined when it is missing. */
export function findServerBinary(name: ServerBinary): string | undefined {
  const chosen = process.env[VARIABLES[name]];
  if (chosen !== undefined) return isExecutable(chosen) ? chosen : undefined;
  // Debian puts nats-server into /usr/sbin, which is not on an ordinary user's PATH.
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  return directories.map((directory) => join(directory, name)).find(isExecutable);
}

/** Path of a server to run; the error is one line that says what to do. */
export function requireServerBinary(...names: ServerBinary[]): string {
  const missing = names.filter((name) => findServerBinary(name) === undefined);
  const first = names[0] && findServerBinary(names[0]);
  if (missing.length > 0 || first === undefined) throw missingBinaryError(missing);
  return first;
}

function missingBinaryError(missing: readonly ServerBinary[]): Error {
  const what = `${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} missing`;
  const error = new Error(`${what}: run \`npm run servers\`, or set HEADGATE_TEST_REDIS / HEADGATE_TEST_NATS`);
  // The reader has to install something; where this code threw is noise around that one line.
  error.stack = error.message;
  return error;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
