import { type ConnectionOptions, connect as connectSecond } from '@nats-io/transport-node';
import { connect as connectFirst } from 'nats';
import { PolicyBucket } from '../../src/policy/nats-bucket.js';
import type { NatsConnection } from '../../src/policy/nats-client.js';

type Options = Pick<ConnectionOptions, 'user' | 'pass' | 'inboxPrefix'>;

/** Both generations of the NATS client, connecting as we ask of those who give us a connection. */
export const CLIENTS: readonly { client: string; connect(url: string, options?: Options): Promise<NatsConnection> }[] =
  [
    { client: 'nats 2.x', connect: (url, options = {}) => connectFirst({ servers: url, ...RECONNECT, ...options }) },
    {
      client: '@nats-io 3.x',
      connect: (url, options = {}) => connectSecond({ servers: url, ...RECONNECT, ...options }),
    },
  ];

const RECONNECT = { maxReconnectAttempts: -1, reconnectTimeWait: 50, reconnectJitter: 10 };

/** Puts bytes into a bucket as anybody with a NATS client could, past all checks. */
export async function putRaw(connection: NatsConnection, bucket: string, key: string, bytes: string): Promise<void> {
  const opened = await PolicyBucket.open(connection, bucket, 2_000);
  const revision = (await opened.get(key))?.revision ?? 0;
  await opened.put(key, new TextEncoder().encode(bytes), revision, {});
}
