import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import { PolicySourceError } from '../../src/errors.js';
import { PolicyBucket } from '../../src/policy/nats-bucket.js';
import type { NatsConnection } from '../../src/policy/nats-client.js';
import { connectNats } from '../../src/policy/nats-connect.js';
import { natsPolicySource } from '../../src/policy/nats-source.js';
import type { PolicySource } from '../../src/policy/policy-source.js';
import { policy } from '../contract/policy-source.js';
import { RecordingListener } from '../contract/policy-source-listener.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/free-port.js';
import { NatsServer } from '../support/nats-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { CLIENTS } from './nats-clients.js';

const LOST = 'Lost the connection to NATS: known policies stay until it is back.';
const BACK = 'NATS is back: all policies have been read again.';
/** Longer than any reconnect takes with the pauses used here. */
const RECOVERY = { deadlineMs: 15_000 };

let listener: RecordingListener;
/** What a test has started, to be ended in the reverse order. */
let started: { end(): Promise<unknown> }[];

beforeEach(() => {
  listener = new RecordingListener();
  started = [];
});
afterEach(async () => {
  for (const { end } of started.reverse()) await end();
});

async function startServer(options: Parameters<typeof NatsServer.start>[0] = {}): Promise<NatsServer> {
  const server = await NatsServer.start(options);
  started.push({ end: () => server.stop() });
  return server;
}

function createSource(nats: string | NatsConnection, waitOnFirstConnect = false): PolicySource {
  const source = natsPolicySource({ nats, timeoutMs: 1_000, waitOnFirstConnect });
  started.push({ end: () => source.close() });
  return source;
}

function keep<T extends NatsConnection>(connection: T): T {
  started.push({ end: () => connection.close() });
  return connection;
}

describe.each(CLIENTS)('A policy source on a connection of $client', ({ connect }) => {
  it('delivers what was published while its connection was cut (C140)', async () => {
    const server = await startServer();
    const proxy = await TcpProxy.start({ targetPort: server.port });
    started.push({ end: () => proxy.stop() });
    const cutOff = keep(await connect(`nats://127.0.0.1:${proxy.port}`));
    const publisher = createSource(keep(await connect(server.url)));
    await publisher.publish(policy('api', 1), 0);
    await createSource(cutOff).watch(listener);

    await proxy.refuseConnections();
    proxy.cut();
    await eventually(() => listener.heard(LOST), 'the loss was reported');
    await publisher.publish(policy('api', 2), 1);
    await publisher.publish(policy('api', 3), 2);
    expect(listener.version('api')).toBe(1);
    await proxy.heal();

    await eventually(() => listener.version('api') === 3, 'the newest arrived', RECOVERY);
    await eventually(() => listener.heard(BACK), 'the return was reported', RECOVERY);
    await publisher.publish(policy('api', 4), 3);
    await eventually(() => listener.version('api') === 4, 'later ones arrive too');
  });

  it('goes on where it was when the server restarts with its data', async () => {
    const server = await startServer();
    const source = createSource(keep(await connect(server.url)));
    await source.publish(policy('api', 1), 0);
    await source.watch(listener);
    await server.restart();
    await eventually(() => listener.heard(BACK), 'the return was reported', RECOVERY);
    await source.publish(policy('api', 2), 1);
    await eventually(() => listener.version('api') === 2, 'a new policy arrives');
  });

  it('keeps the last good policies when the server loses its data, and delivers what is published after', async () => {
    const server = await startServer();
    const source = createSource(keep(await connect(server.url)));
    for (const version of [1, 2, 3]) await source.publish(policy('api', version), version - 1);
    await source.watch(listener);
    await server.restart({ keepData: false });
    await eventually(() => listener.heard(BACK), 'the return was reported', RECOVERY);
    expect(listener.updates.filter(({ document }) => document === undefined)).toEqual([]);
    expect(await source.list()).toEqual([]);

    const other = createSource(keep(await connect(server.url)));
    await other.publish(policy('api', 4), 0);
    await eventually(() => listener.newest('api')?.via === 'watch', 'the watch delivered it');
    expect(listener.version('api')).toBe(4);
    const opened = await PolicyBucket.open(keep(await connect(server.url)), 'headgate_policies', 1_000);
    // Below the revision that the source saw before: the version decides, not this.
    expect((await opened.get('api'))?.revision).toBe(1);
  });

  it('starts over when its bucket is deleted and made again under it', async () => {
    const server = await startServer();
    const connection = keep(await connect(server.url));
    const source = natsPolicySource({ nats: connection, timeoutMs: 1_000, rereadMs: 200 });
    started.push({ end: () => source.close() });
    await source.publish(policy('api', 1), 0);
    await source.watch(listener);
    await (connection as unknown as { request(subject: string): Promise<unknown> }).request(
      '$JS.API.STREAM.DELETE.KV_headgate_policies',
    );
    await createSource(connection).publish(policy('api', 2), 0);
    await eventually(() => listener.newest('api')?.via === 'watch' && listener.version('api') === 2, 'it was found');
  });

  it('says that a server has no JetStream, and delivers once it has', async () => {
    const without = await startServer({ jetstream: false });
    const source = createSource(keep(await connect(without.url)));
    const message = 'Expected a NATS server with JetStream, got one without: the policies live in a key-value bucket';
    await source.watch(listener);
    expect(listener.heard(message)).toBe(true);
    await expect(source.list()).rejects.toThrow(PolicySourceError);
    await expect(source.list()).rejects.toThrow(message);
    await expect(source.publish(policy('api', 1), 0)).rejects.toThrow(message);

    await without.stop();
    const server = await startServer({ port: without.port });
    await createSource(keep(await connect(server.url))).publish(policy('api', 1), 0);
    await eventually(() => listener.version('api') === 1, 'the policy arrived', RECOVERY);
    await eventually(() => listener.heard(BACK), 'the arrival of JetStream was reported', RECOVERY);
  });

  it('lets a limiter start with the policies given in code where there is no JetStream', async () => {
    const server = await startServer({ jetstream: false });
    const troubles: Error[] = [];
    const limiter = await createLimiter({
      policies: [{ name: 'api', local: { rate: 1, burst: 1 } }],
      nats: keep(await connect(server.url)),
      telemetry: false,
      onTrouble: (error) => troubles.push(error),
    });
    started.push({ end: () => limiter.close() });
    expect(limiter.policy('api').tryAcquire('k')).toBe(true);
    expect(troubles).toEqual([expect.objectContaining({ code: 'HEADGATE_POLICY_SOURCE' })]);
  });

  it('gives up on a request in its own time while the server is frozen', async () => {
    const server = await startServer();
    const source = createSource(keep(await connect(server.url)));
    await source.publish(policy('api', 1), 0);
    await server.pause();
    await expect(source.publish(policy('api', 2), 1)).rejects.toThrow('Could not publish policy "api" over NATS: ');
    await expect(source.list()).rejects.toThrow('Could not list policies over NATS: ');
    await source.watch(listener);
    expect(listener.heard('Could not watch policies over NATS: ')).toBe(true);
    server.resume();
    await eventually(() => listener.version('api') === 1, 'it was read in the end', RECOVERY);
  });

  it('works with exactly the permissions that docs/policies.md lists', async () => {
    const server = await startServer({ args: ['-c', await permissionsFile()] });
    const asWriter = keep(await connect(server.url, { user: 'writer', pass: 'w', inboxPrefix: '_INBOX_headgate' }));
    const asReader = keep(await connect(server.url, { user: 'reader', pass: 'r', inboxPrefix: '_INBOX_headgate' }));
    const reader = createSource(asReader);
    await expect(reader.watch(new RecordingListener())).rejects.toThrow(
      'Expected the permission to watch policies in the NATS bucket "headgate_policies", got: ' +
        'Permissions Violation for Publish to "$JS.API.STREAM.CREATE.KV_headgate_policies".',
    );

    const writer = createSource(asWriter);
    await writer.publish(policy('api', 1), 0);
    const watching = createSource(asReader);
    await watching.watch(listener);
    await writer.publish(policy('api', 2), 1);
    await eventually(() => new Set(listener.updates.map(({ via }) => via)).size === 3, 'it came by every road');
    expect(await watching.list()).toEqual([policy('api', 2)]);
    await expect(watching.publish(policy('api', 3), 2)).rejects.toThrow(
      'Expected the permission to publish policy "api" in the NATS bucket "headgate_policies", got: Permissions ' +
        'Violation for Publish to "$KV.headgate_policies.api". docs/policies.md lists what is needed.',
    );
    expect(listener.troubles).toEqual([]);
  });

  it('does without hints where it may not have them, and says so once', async () => {
    const server = await startServer({ args: ['-c', await permissionsFile()] });
    await createSource(
      keep(await connect(server.url, { user: 'writer', pass: 'w', inboxPrefix: '_INBOX_headgate' })),
    ).publish(policy('api', 1), 0);
    const deaf = keep(await connect(server.url, { user: 'deaf', pass: 'd', inboxPrefix: '_INBOX_headgate' }));
    const source = natsPolicySource({ nats: deaf, timeoutMs: 1_000, rereadMs: 50 });
    started.push({ end: () => source.close() });
    await source.watch(listener);
    await eventually(() => listener.updates.length > 3, 'it was read again and again');
    expect(listener.troubles).toHaveLength(1);
    expect(listener.heard('Expected the permission to take hints')).toBe(true);
  });
});

describe('A policy source with a URL', () => {
  it('starts without a server, says so, and delivers when one is there', async () => {
    const port = await freePort();
    const source = createSource(`nats://127.0.0.1:${port}`);
    await source.watch(listener);
    expect(listener.updates).toEqual([]);
    expect(listener.heard('Could not watch policies over NATS: ')).toBe(true);
    await expect(source.publish(policy('api', 1), 0)).rejects.toThrow(PolicySourceError);

    const server = await startServer({ port });
    await createSource(server.url).publish(policy('api', 1), 0);
    await eventually(() => listener.version('api') === 1, 'the policy arrived', RECOVERY);
    await eventually(() => listener.heard(BACK), 'the arrival of NATS was reported', RECOVERY);
  });

  it('waits for a server where waitOnFirstConnect says so', async () => {
    const port = await freePort();
    let isWatching = false;
    const watching = createSource(`nats://127.0.0.1:${port}`, true)
      .watch(listener)
      .then(() => {
        isWatching = true;
      });
    await eventually(() => listener.heard('Could not watch policies over NATS: '), 'it tried');
    expect(isWatching).toBe(false);
    await startServer({ port });
    await watching;
  });

  it('stops waiting when it is closed', async () => {
    const source = createSource(`nats://127.0.0.1:${await freePort()}`, true);
    const refused = expect(source.watch(listener)).rejects.toThrow(
      'The policy source was closed before it had read its policies.',
    );
    await source.close();
    await refused;
  });

  it('takes user and password from the URL, and says when the server does not take them', async () => {
    const server = await startServer({ args: ['--user', 'us er', '--pass', 'p@ss:w/rd'] });
    const at = (credentials: string) => `nats://${credentials}@127.0.0.1:${server.port}`;
    await createSource(at('us%20er:p%40ss:w%2Frd')).watch(listener);
    await expect(createSource(at('us%20er:wrong')).watch(listener)).rejects.toThrow(
      'Expected NATS to accept the credentials it was given, got: Authorization Violation.',
    );
  });

  it('reconnects for as long as it takes', async () => {
    const server = await startServer();
    const source = createSource(server.url);
    await source.watch(listener);
    await server.restart({ keepData: false });
    await eventually(() => listener.heard(BACK), 'it came back', RECOVERY);
    await source.publish(policy('api', 1), 0);
    await eventually(() => listener.version('api') === 1, 'policies arrive');
  });
});

describe.each(['nats', '@nats-io/transport-node'])('A connection that is made from a URL by %s', (client) => {
  /** As where only this client is installed. */
  const connectTo = async (url: string): Promise<NatsConnection> =>
    keep(
      await connectNats(url, 1_000, (name) => {
        if (client !== 'nats' || name === 'nats') return import(name);
        return Promise.reject(
          Object.assign(new Error(`Cannot find package '${name}'`), { code: 'ERR_MODULE_NOT_FOUND' }),
        );
      }),
    );

  it('is made with the user and password of the URL', async () => {
    const server = await startServer({ args: ['--user', 'us er', '--pass', 'p@ss:w/rd'] });
    const at = (credentials: string) => `nats://${credentials}@127.0.0.1:${server.port}`;
    await createSource(await connectTo(at('us%20er:p%40ss:w%2Frd'))).watch(listener);
    await expect(connectTo(at('us%20er:wrong'))).rejects.toThrow(/Authorization Violation/i);
  });

  it('comes back with the server, and brings what it missed', async () => {
    const server = await startServer();
    const connection = await connectTo(server.url);
    expect('jetstream' in connection).toBe(client === 'nats');
    const source = createSource(connection);
    await source.watch(listener);
    await server.restart();
    await eventually(() => listener.heard(BACK), 'it came back', RECOVERY);
    await source.publish(policy('api', 1), 0);
    await eventually(() => listener.version('api') === 1, 'policies arrive');
  });
});

/** A server's configuration with the permissions that docs/policies.md lists. */
async function permissionsFile(): Promise<string> {
  const [reading, writing] = await documentedPermissions();
  const create = '$JS.API.STREAM.CREATE.KV_headgate_policies';
  const user = (name: string, publish: string[], subscribe: string[]) =>
    `{ user: ${name}, password: ${name[0]}, permissions: { ` +
    `publish: { allow: ${JSON.stringify(publish)} }, subscribe: { allow: ${JSON.stringify(subscribe)} } } }`;
  const users = [
    user('reader', reading.publish, reading.subscribe),
    user('writer', [...reading.publish, ...writing.publish, create], reading.subscribe),
    user('deaf', reading.publish, ['_INBOX_headgate.>']),
  ];
  const directory = await mkdtemp(join(tmpdir(), 'headgate-nats-conf-'));
  started.push({ end: () => rm(directory, { recursive: true }) });
  const file = join(directory, 'nats.conf');
  await writeFile(file, `authorization { users = [ ${users.join(', ')} ] }\n`);
  return file;
}

interface Permissions {
  publish: string[];
  subscribe: string[];
}

/** What the page says a reader needs, and what a writer needs beside that. */
async function documentedPermissions(): Promise<[Permissions, Permissions]> {
  const page = await readFile(new URL('../../docs/policies.md', import.meta.url), 'utf8');
  const blocks = page.slice(page.indexOf('## Permissions')).matchAll(/```\n(.*?)```/gs);
  const [reading, writing] = Array.from(blocks, ([, block = '']): Permissions => {
    const subjects = (name: string) =>
      Array.from(
        new RegExp(`${name}: \\[(.*?)\\]`, 's').exec(block)?.[1]?.matchAll(/"(.*?)"/g) ?? [],
        ([, subject = '']) => subject,
      );
    return { publish: subjects('publish'), subscribe: subjects('subscribe') };
  });
  if (!reading || !writing) throw new Error('docs/policies.md has no two blocks of permissions');
  return [reading, writing];
}
