import type { Redis, RedisOptions } from 'ioredis';
import { InvalidOptionError, MissingPeerError, show } from '../errors.js';
import type { Milliseconds } from '../units.js';
import type { RedisClient } from './redis-client.js';

/** A connection of our own. */
export interface RedisConnection {
  readonly client: RedisClient;
  /** Ends it, for good and at once. What is under way is rejected. */
  disconnect(): void;
}

/** Callers have deadlines of their own; this one only keeps what is never answered from piling up. */
const COMMAND_TIMEOUT_MS: Milliseconds = 1_000;
/** A server that has not said a word for so long while something waits for it is given up, and connected to anew. */
const SOCKET_TIMEOUT_MS: Milliseconds = 1_500;
const CONNECT_TIMEOUT_MS: Milliseconds = 2_000;
const LONGEST_RETRY_MS: Milliseconds = 2_000;

/** No lease call may be queued or sent again: it would run at a time, or on a server, that it was not meant for. */
const SAFE_OPTIONS = {
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  commandTimeout: COMMAND_TIMEOUT_MS,
  socketTimeout: SOCKET_TIMEOUT_MS,
  connectTimeout: CONNECT_TIMEOUT_MS,
  // For ever, and spread: all instances lose a server at the same moment.
  retryStrategy: (attempt: number) =>
    Math.min(LONGEST_RETRY_MS, 25 * 2 ** Math.min(attempt, 10)) * (0.5 + Math.random() / 2),
  // A former primary keeps its connections; its name may lead to the new one.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
} as const satisfies RedisOptions;

/**
 * Connects to `url` (`redis://`, `rediss://`). Answers once connected, or once the first attempt has failed: it goes on
 * trying until {@link RedisConnection.disconnect}, and the limiter starts degraded.
 */
export async function connectRedis(url: string): Promise<RedisConnection> {
  const safeUrl = checkUrl(url);
  const ioredis = await importClient();
  const client = new ioredis.Redis(safeUrl, { ...SAFE_OPTIONS });
  // Without a listener ioredis prints each of them; the ceiling reports its state by `ready` and rejected calls.
  client.on('error', () => {});
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(patience);
      client.removeListener('ready', done);
      client.removeListener('close', done);
      resolve();
    };
    const patience = setTimeout(done, CONNECT_TIMEOUT_MS);
    client.on('ready', done);
    client.on('close', done);
  });
  return { client, disconnect: () => client.disconnect() };
}

/** The URL without parameters that would take the place of {@link SAFE_OPTIONS}. */
function checkUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || (parsed.protocol !== 'redis:' && parsed.protocol !== 'rediss:')) {
    // The text may hold a password.
    const got = parsed ? `one that begins with ${show(parsed.protocol)}` : `${url.length} characters that are no URL`;
    throw new InvalidOptionError(`Expected \`redis\` to be a URL such as "redis://127.0.0.1:6379", got ${got}.`);
  }
  for (const name of Object.keys(SAFE_OPTIONS)) parsed.searchParams.delete(name);
  return parsed.href;
}

async function importClient(): Promise<{ Redis: typeof Redis }> {
  try {
    return await import('ioredis');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new MissingPeerError('ioredis', 'redis', { cause: error });
  }
}
