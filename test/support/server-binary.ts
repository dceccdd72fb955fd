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

/** Path of the first of the servers; when any is missing, an error of one line that says what to do. */
export function requireServerBinary(...names: [ServerBinary, ...ServerBinary[]]): string {
  const missing = names.filter((name) => findServerBinary(name) === undefined);
  const first = findServerBinary(names[0]);
  if (first !== undefined && missing.length === 0) return first;
  const what = `${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} missing`;
  throw new Error(`${what}: run \`npm run servers\`, or set HEADGATE_TEST_REDIS / HEADGATE_TEST_NATS`);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
