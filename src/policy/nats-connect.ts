import { MissingPeerError } from '../errors.js';
import type { Milliseconds } from '../units.js';
import type { NatsConnection } from './nats-client.js';

/** How often an idle connection is checked, in ms: one that is half open is noticed after two to three of these. */
const PING_INTERVAL_MS = 10_000;

/** Loads a module by its name. An argument only for tests of what happens without it. */
export type Importer = (name: string) => Promise<unknown>;

/** Not a literal, so that bundlers leave packages alone that may not be there. */
const importByName: Importer = (name) => import(name);

/**
 * An optional peer dependency.
 *
 * @throws MissingPeerError where it is not installed.
 */
export async function importPeer<T>(name: string, load = importByName): Promise<T> {
  try {
    return (await load(name)) as T;
  } catch (cause) {
    if (isMissing(cause, name)) throw new MissingPeerError(name, 'nats', { cause });
    throw cause;
  }
}

interface ClientModule {
  connect(options: Record<string, unknown>): Promise<NatsConnection>;
}

/**
 * Connects to the server or servers (comma-separated) at `url`, with the newer client if that is installed. The
 * connection never gives up on reconnecting, as either client by default does after ten attempts.
 *
 * @param timeoutMs how long the first attempt may take.
 * @throws MissingPeerError where neither client is installed.
 */
export async function connectNats(url: string, timeoutMs: Milliseconds, load = importByName): Promise<NatsConnection> {
  const client = await loadClient(load);
  return client.connect({
    ...serversAndCredentials(url),
    name: 'headgate',
    timeout: timeoutMs,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 500,
    reconnectJitter: 500,
    pingInterval: PING_INTERVAL_MS,
  });
}

async function loadClient(load: Importer): Promise<ClientModule> {
  try {
    const client = await importPeer<ClientModule>('@nats-io/transport-node', load);
    // Without these two the newer client can connect but not reach a bucket.
    await importPeer('@nats-io/jetstream', load);
    await importPeer('@nats-io/kv', load);
    return client;
  } catch (missing) {
    if (!(missing instanceof MissingPeerError)) throw missing;
    return importPeer<ClientModule>('nats', load).catch((error: unknown) => {
      throw error instanceof MissingPeerError ? missing : error;
    });
  }
}

/** The clients take no user and password, or token, from a URL. */
function serversAndCredentials(url: string): Record<string, unknown> {
  const credentials: Record<string, string> = {};
  const servers = url.split(',').map((each) => {
    const match = /^(\s*(?:\w+:\/\/)?)([^@/]*)@(.*)$/.exec(each);
    if (!match) return each.trim();
    const [, scheme = '', userinfo = '', rest = ''] = match;
    const [user = '', ...password] = userinfo.split(':');
    if (password.length === 0) credentials['token'] = decodeURIComponent(user);
    else {
      credentials['user'] = decodeURIComponent(user);
      credentials['pass'] = decodeURIComponent(password.join(':'));
    }
    return `${scheme}${rest}`.trim();
  });
  return { servers, ...credentials };
}

function isMissing(error: unknown, name: string): boolean {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  const isUnresolved = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  // A package that is there but lacks one of its own is broken, not missing.
  return isUnresolved && String(message).includes(`'${name}'`);
}
