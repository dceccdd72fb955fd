import type { RedisClient, ScriptArgument } from './redis-client.js';
import type { EmbeddedScript } from './scripts.generated.js';

/**
 * Runs a script by its hash, and sends its text only to a server that does not know it (yet, or any more). Started
 * within the call. No other error is tried again: the script may have run.
 */
export function runScript(
  client: RedisClient,
  script: EmbeddedScript,
  keys: readonly string[],
  args: readonly ScriptArgument[],
): Promise<unknown> {
  return client
    .evalsha(script.sha1, keys.length, ...keys, ...args)
    .catch((error: unknown) =>
      isNoScript(error) ? client.eval(script.source, keys.length, ...keys, ...args) : Promise.reject(error),
    );
}

/**
 * Whether a script failed over what it found, as far as the error tells: not because of the state that the server is in
 * (OOM, READONLY, LOADING and the like have prefixes of their own), nor because there was no answer.
 */
export function isOverData(error: unknown): boolean {
  return error instanceof Error && /^(ERR|WRONGTYPE) /.test(error.message);
}

/** Only the prefix says so on every server: Redis and Valkey word the rest differently. */
function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
