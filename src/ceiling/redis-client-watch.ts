import { RedisClientError } from '../errors.js';
import type { GivenRedisClient } from './node-redis.js';
import type { RedisClient } from './redis-client.js';

/** Where the clients keep what decides whether they connect again. */
interface Settings {
  /** ioredis, iovalkey. */
  readonly retryStrategy?: unknown;
  readonly clusterRetryStrategy?: unknown;
  /** node-redis. */
  readonly socket?: { readonly reconnectStrategy?: unknown; readonly socketTimeout?: unknown };
}

/**
 * Tells its owner, by `onTrouble`, that a client is set up to give up, and that it has given up or was closed. Such a
 * client leaves the limiter degraded for ever, with Redis as healthy as can be. The answer ends the watch.
 *
 * @param given as it was given; `client` is the same, as the ceiling uses it.
 */
export function watchGivenClient(
  given: GivenRedisClient,
  client: RedisClient,
  onTrouble: (error: RedisClientError) => void,
): () => void {
  const weakness = weaknessOf(Object(given).options ?? {});
  if (weakness) onTrouble(new RedisClientError(weakness));
  const whenEnded = (): void =>
    onTrouble(
      new RedisClientError(
        'The Redis client that the limiter was given was closed, or has given up connecting: ceilings stay degraded. ' +
          'Close the limiter before its client, and let the client try for ever.',
      ),
    );
  client.on('end', whenEnded);
  return () => {
    client.removeListener('end', whenEnded);
  };
}

function weaknessOf({ retryStrategy, clusterRetryStrategy, socket }: Settings): string | undefined {
  const expected = (option: string, got: string): string =>
    `Expected the Redis client that the limiter was given to connect again for as long as it takes, got ${option} ${got}: ` +
    'once it loses its connection, ceilings stay degraded.';
  const isOff = (strategy: unknown): boolean => strategy === null || strategy === false;
  if (isOff(retryStrategy)) return expected('retryStrategy', String(retryStrategy));
  if (isOff(clusterRetryStrategy)) return expected('clusterRetryStrategy', String(clusterRetryStrategy));
  if (socket?.reconnectStrategy === false) return expected('reconnectStrategy', 'false');
  // node-redis' own strategy does not connect again after such a timeout.
  if (socket?.socketTimeout && socket.reconnectStrategy === undefined)
    return expected('socketTimeout', 'without a reconnectStrategy');
  return undefined;
}
