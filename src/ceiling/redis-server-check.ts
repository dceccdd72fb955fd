import { CeilingError } from '../errors.js';
import { type RedisClient, serversOf } from './redis-client.js';

/** Something about a server that weakens the ceiling without stopping it. */
export interface ServerTrouble {
  readonly error: CeilingError;
  /** INFO may not be called, so that a server with stale data is not told from the one before it. */
  readonly cannotIdentify: boolean;
}

/** Asks each server behind `client` for what the guarantee depends on. Rejects where one does not answer. */
export async function troubleWith(client: RedisClient): Promise<ServerTrouble[]> {
  const found = await Promise.all(serversOf(client).map(troubleWithServer));
  // The same on each node of a cluster: one is enough to say so.
  return [...new Map(found.flat().map((trouble) => [trouble.error.message, trouble])).values()];
}

async function troubleWithServer(server: Pick<RedisClient, 'info'>): Promise<ServerTrouble[]> {
  let memory: string;
  try {
    memory = await server.info('memory');
  } catch (cause) {
    if (!isRefusal(cause)) throw cause;
    const message =
      'This Redis user may not call INFO: a failover to a stale replica will not be noticed, nor an eviction policy ' +
      'that drops buckets. Grant +info.';
    return [{ error: new CeilingError(message, { cause }), cannotIdentify: true }];
  }
  const policy = field(memory, 'maxmemory_policy');
  if (policy === undefined || policy === 'noeviction' || field(memory, 'maxmemory') === '0') return [];
  const message =
    `Expected maxmemory-policy to be noeviction, got ${policy}: a bucket that Redis evicts starts over, so that up to ` +
    'its burst can be admitted twice.';
  return [{ error: new CeilingError(message), cannotIdentify: false }];
}

/** NOPERM, or a server or proxy that has no such command. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /^(NOPERM|ERR unknown command)/i.test(error.message);
}

function field(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}
