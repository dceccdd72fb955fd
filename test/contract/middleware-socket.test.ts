import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import { createLimiter } from '../../src/create-limiter.js';
import type { LimiterOptions, PolicyDocument } from '../../src/index.js';
import {
  type DeniedMessage,
  rateLimit,
  type SetupWarning,
  type SocketRateLimitOptions,
} from '../../src/middleware/socket.js';
import { systemTime } from '../../src/time.js';
import { eventually } from '../support/eventually.js';
import { RemoteCeiling } from '../support/remote-ceiling.js';

const toClose: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close();
});

async function serve(
  policies: readonly PolicyDocument[],
  options: SocketRateLimitOptions<RawData, WebSocket>,
  { listener, ...more }: Partial<LimiterOptions> & { listener?: (text: string) => unknown } = {},
) {
  const limiter = await createLimiter({ policies, telemetry: false, ...more } as LimiterOptions<never, never>);
  const seen = { messages: [] as string[], warnings: [] as SetupWarning[], errors: [] as Error[] };
  const onMessage = rateLimit<RawData, WebSocket>(limiter, {
    onWarning: (warning) => seen.warnings.push(warning),
    onError: (error) => seen.errors.push(error),
    ...options,
  });
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  server.on('connection', (socket, request) => {
    onMessage(socket, request, (data) => {
      seen.messages.push(String(data));
      return listener?.(String(data));
    });
  });
  toClose.push(
    () => limiter.close(),
    () => {
      for (const client of server.clients) client.terminate();
      server.close();
    },
  );
  const connect = async (headers: Record<string, string> = {}) => {
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, { headers });
    await once(client, 'open');
    const closed = once(client, 'close').then(([code, reason]) => ({ code, reason: String(reason) }));
    return { client, closed };
  };
  return { limiter, seen, connect };
}

const slow = (burst: number): PolicyDocument => ({ name: 'messages', local: { rate: 1, burst, per: '1h' } });

describe('WebSocket messages', () => {
  it('pass in their order up to the limit; then the socket is closed with the time to come back', async () => {
    const { connect, seen } = await serve([slow(3)], { policy: 'messages' });
    const { client, closed } = await connect();
    for (const text of ['a', 'b', 'c', 'd', 'e']) client.send(text);
    const { code, reason } = await closed;
    expect(code).toBe(1013);
    expect(reason).toMatch(/^Retry in \d{4} s\.$/);
    expect(seen).toMatchObject({ messages: ['a', 'b', 'c'], errors: [] });
  });

  it('are dropped, or handed to a function that knows why, where the socket should stay open', async () => {
    const denied: DeniedMessage<RawData, WebSocket>[] = [];
    const { connect, seen } = await serve([slow(5)], {
      policy: 'messages',
      cost: ({ data }) => String(data).length,
      denied: (message) => denied.push(message),
    });
    const { client } = await connect();
    for (const text of ['abcd', 'efgh', 'i']) client.send(text);
    await eventually(() => seen.messages.length === 2, 'the short one has come');
    expect(seen.messages).toEqual(['abcd', 'i']);
    expect(denied).toMatchObject([{ rulings: [{ decision: { reason: 'empty' } }] }]);
    expect(denied[0]?.retryAfterMs).toBeGreaterThan(0);

    const silent = await serve([slow(1)], { policy: 'messages', denied: 'drop' });
    const other = await silent.connect();
    for (const text of ['a', 'b']) other.client.send(text);
    await eventually(() => silent.limiter.stats()[0]?.deniedLocal === 1, 'one was denied');
    expect(silent.seen.messages).toEqual(['a']);
    expect(other.client.readyState).toBe(WebSocket.OPEN);
  });

  it('wait for tokens with their socket paused, and nobody waits once it is closed', async () => {
    const { connect, limiter, seen } = await serve([{ name: 'messages', local: { rate: 1, burst: 1, per: '10m' } }], {
      policy: 'messages',
      maxWaitMs: 3_600_000,
    });
    const { client } = await connect();
    for (let i = 0; i < 5; i++) client.send(String(i));
    await eventually(() => limiter.stats()[0]?.waiting === 1, 'one waits, and the rest behind it');
    client.terminate();
    await eventually(() => limiter.stats()[0]?.waiting === 0, 'nobody waits');
    expect(seen).toMatchObject({ messages: ['0'], errors: [] });
  });

  it('of a cold key wait for the lease', async () => {
    const { connect, seen } = await serve(
      [{ name: 'messages', ceiling: { rate: 10, burst: 10 } }],
      { policy: 'messages', key: ({ data }) => String(data), denied: 'drop' },
      { ceiling: new RemoteCeiling(systemTime, 10), newStore: 'full' },
    );
    const { client } = await connect();
    // A key of its own for each attempt, so that each is cold: a busy machine may miss the deadline of one call.
    let attempt = 0;
    await eventually(() => client.send(`cold ${++attempt}`) ?? seen.messages.length > 0, 'one of a cold key has come');
  });

  it('whose key or listener throws close the socket, and tell', async () => {
    const broken = () => {
      throw new Error('broken');
    };
    for (const [options, listener] of [
      [{ policy: 'messages', key: broken }, undefined],
      [{ policy: 'messages' }, broken],
      [{ policy: 'messages' }, async () => broken()],
    ] as const) {
      const { connect, seen } = await serve([slow(3)], options, listener && { listener });
      const { client, closed } = await connect();
      client.send('a');
      expect((await closed).code).toBe(1011);
      expect(seen.errors).toMatchObject([{ message: 'broken' }]);
    }
  });

  it('are limited by the address of the request, and not by what it claims', async () => {
    const { connect, seen } = await serve([slow(1)], { policy: 'messages' });
    const first = await connect({ 'x-forwarded-for': '192.0.2.1' });
    first.client.send('a');
    await eventually(() => seen.messages.length === 1, 'the first has come');
    const second = await connect({ 'x-forwarded-for': '192.0.2.2' });
    second.client.send('b');
    expect((await second.closed).code).toBe(1013);
    expect(seen.warnings.map(({ code }) => code)).toEqual(['HEADGATE_FORWARDED_FOR_IGNORED']);
  });

  it('are not limited at all by options that make no sense', async () => {
    await expect(serve([slow(1)], { policy: 'massages' })).rejects.toThrow('massages');
    await expect(serve([slow(1)], { policy: 'messages', denied: 'ignore' as never })).rejects.toThrow('`denied`');
  });
});
