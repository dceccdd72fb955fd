import type { RedisClient, ScriptArgument } from './redis-client.js';
import type { EmbeddedScript } from './scripts.generated.js';

/**
 * Runs a script by its hash, and sends its text only to a server that does not know it (yet, or any more). Started
 * within the call. No other error is tried again: the script may have run.
 *
 * @param strings how those of its reply come
 */
export function runScript(
  client: RedisClient,
  { sha1, source }: EmbeddedScript,
  keys: readonly string[],
  args: readonly ScriptArgument[],
  strings: 'text' | 'bytes' = 'text',
): Promise<unknown> {
  const send = (command: 'evalsha' | 'eval', script: string): Promise<unknown> =>
    strings === 'bytes'
      ? client.callBuffer(command, [script, String(keys.length), ...keys, ...args])
      : client[command](script, keys.length, ...keys, ...args);
  return send('evalsha', sha1).catch((error: unknown) =>
    isNoScript(error) ? send('eval', source) : Promise.reject(error),
  );
}

/**
 * The replies to a batch of `size` calls that travel in one script. Where it fails over what it finds under one of their
 * keys, which somebody else has written to, each call is sent again by itself, so that it fails alone: who has been served
 * is told the same once more, as the numbers of calls see to.
 *
 * @param only the batch of one of the calls
 * @param execute rejects with an error whose `cause` is the server's; without one, its answer can't be read
 */
export async function repliesTo<B, R>(
  batch: B,
  { size, only, execute }: { size: number; only: (index: number) => B; execute: (batch: B) => Promise<R[]> },
): Promise<(R | Error)[]> {
  try {
    return await execute(batch);
  } catch (error) {
    const { cause } = error as Error;
    if (size === 1 || !(cause === undefined || isOverData(cause))) throw error;
    return Promise.all(
      Array.from({ length: size }, (_, index) =>
        execute(only(index)).then(
          ([reply]) => reply as R,
          (error: Error) => error,
        ),
      ),
    );
  }
}

/** The reply at `index` of those; rejects with what it failed with. */
export async function replyAt<R>(replies: Promise<(R | Error)[]> | undefined, index: number): Promise<R> {
  const reply = (await replies)?.[index];
  if (reply instanceof Error) throw reply;
  return reply as R;
}

/** What belongs to the call at `index` where each of `size` calls has as many items of a list as the others. */
export function partOf<T>(list: readonly T[], index: number, size: number): T[] {
  const length = list.length / size;
  return list.slice(index * length, (index + 1) * length);
}

/**
 * Whether a script failed over what it found, as far as the error tells: not because of the state that the server is in
 * (OOM, READONLY, LOADING and the like have prefixes of their own), nor because there was no answer.
 */
function isOverData(error: unknown): boolean {
  return error instanceof Error && /^(ERR|WRONGTYPE) /.test(error.message);
}

/** Only the prefix says so on every server: Redis and Valkey word the rest differently. */
function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
