import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { connect } from 'nats';
import ts from 'typescript';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { eventually } from '../support/eventually.js';
import { NatsServer } from '../support/nats-server.js';
import { RedisServer } from '../support/redis-server.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function client(port: number, options: { commandTimeout?: number; retry?: boolean } = {}): Redis {
  const redis = new Redis({
    port,
    maxRetriesPerRequest: 0,
    ...(options.commandTimeout === undefined ? {} : { commandTimeout: options.commandTimeout }),
    retryStrategy: () => (options.retry ? 20 : null),
  });
  redis.on('error', () => {});
  cleanups.push(() => redis.disconnect());
  return redis;
}

async function redisServer(options: Parameters<typeof RedisServer.start>[0] = {}): Promise<RedisServer> {
  const server = await RedisServer.start(options);
  cleanups.push(() => server.stop());
  return server;
}

async function proxyTo(targetPort: number): Promise<TcpProxy> {
  const proxy = await TcpProxy.start({ targetPort });
  cleanups.push(() => proxy.stop());
  return proxy;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function outcomeWithin(ms: number, promise: Promise<unknown>): Promise<'settled' | 'pending'> {
  const timer = new Promise<'pending'>((resolve) => setTimeout(() => resolve('pending'), ms));
  return Promise.race([promise.then(() => 'settled' as const), timer]);
}

describe('TcpProxy', () => {
  const sharedRedisPort = Number(new URL(inject('redisUrl')).port);

  it('loses the reply of an INCR that did run', async () => {
    const proxy = await proxyTo(sharedRedisPort);
    const direct = client(sharedRedisPort);
    const proxied = client(proxy.port);
    await proxied.set('support:lost-reply', 0);

    proxy.hold('toClient');
    const reply = proxied.incr('support:lost-reply').catch((error: Error) => error);
    await eventually(async () => (await direct.get('support:lost-reply')) === '1', 'the INCR has run');
    await eventually(() => proxy.heldBytes('toClient') > 0, 'its reply is in the proxy');
    proxy.cut();

    expect(await reply).toBeInstanceOf(Error);
    expect(await direct.get('support:lost-reply')).toBe('1');
  });

  it('passes held bytes on when it heals, each reply to its own command', async () => {
    const proxy = await proxyTo(sharedRedisPort);
    const proxied = client(proxy.port);
    await proxied.set('support:held', 'before');

    proxy.hold();
    const replies = Promise.all([
      proxied.get('support:held'),
      proxied.set('support:held', 'after'),
      proxied.get('support:held'),
    ]);
    expect(await outcomeWithin(50, replies)).toBe('pending');
    await proxy.heal();

    expect(await replies).toEqual(['before', 'OK', 'after']);
  });

  it('does not let a command through while the way to the server is held', async () => {
    const proxy = await proxyTo(sharedRedisPort);
    const direct = client(sharedRedisPort);
    const proxied = client(proxy.port);
    await proxied.set('support:to-server', 0);

    proxy.hold('toServer');
    const reply = proxied.incr('support:to-server').catch((error: Error) => error);
    await eventually(() => proxy.heldBytes('toServer') > 0, 'the INCR is in the proxy');
    proxy.cut();

    expect(await reply).toBeInstanceOf(Error);
    expect(await direct.get('support:to-server')).toBe('0');
  });

  it('delays both ways and keeps the order in spite of jitter', async () => {
    const proxy = await proxyTo(sharedRedisPort);
    const proxied = client(proxy.port);
    await proxied.del('support:order');
    proxy.latencyMs = 20;
    proxy.jitterMs = 20;

    const startedAt = performance.now();
    await proxied.ping();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(39);

    const numbers = Array.from({ length: 30 }, (_, index) => String(index));
    const pushes: Promise<number>[] = [];
    for (const number of numbers) {
      pushes.push(proxied.rpush('support:order', number));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await Promise.all(pushes);
    expect(await proxied.lrange('support:order', 0, -1)).toEqual(numbers);
  });

  it('refuses new connections and keeps the open ones', async () => {
    const proxy = await proxyTo(sharedRedisPort);
    const open = client(proxy.port);
    await open.ping();

    await proxy.refuseConnections();
    const late = client(proxy.port);
    const [error] = (await new Promise((resolve) => late.once('error', (...args) => resolve(args)))) as [
      NodeJS.ErrnoException,
    ];
    expect(error.code).toBe('ECONNREFUSED');
    expect(await open.ping()).toBe('PONG');

    await proxy.heal();
    expect(await client(proxy.port).ping()).toBe('PONG');
  });

  it('lets new connections hang until it heals', async () => {
    const proxy = await proxyTo(sharedRedisPort);
    await proxy.hangConnections();
    const reply = client(proxy.port).ping();

    await eventually(() => proxy.heldBytes('toServer') > 0, 'the client has connected and spoken');
    expect(await outcomeWithin(50, reply)).toBe('pending');
    await proxy.heal();

    expect(await reply).toBe('PONG');
  });

  it('sends new connections to another server after retarget()', async () => {
    const other = await redisServer();
    const proxy = await proxyTo(sharedRedisPort);
    await client(other.port).set('support:which', 'other');

    proxy.retarget(other.port);

    expect(await client(proxy.port).get('support:which')).toBe('other');
  });

  it('passes on that the server has gone', async () => {
    const server = await redisServer();
    const proxy = await proxyTo(server.port);
    const proxied = client(proxy.port);
    await proxied.ping();

    const closed = new Promise((resolve) => proxied.once('close', resolve));
    await server.kill();

    await closed;
    await eventually(() => proxy.connectionCount === 0, 'the proxy forgot the connection');
  });
});

describe('RedisServer', () => {
  it('comes back on the same port with its data, in a new process', async () => {
    const server = await redisServer();
    await client(server.port).set('kept', 'yes');
    const oldPid = server.pid;

    await server.restart({ keepData: true });

    expect(server.pid).not.toBe(oldPid);
    expect(await client(server.port).get('kept')).toBe('yes');
  });

  it('comes back empty when asked to', async () => {
    const server = await redisServer({ appendonly: true });
    await client(server.port).set('kept', 'no');

    await server.restart({ keepData: false });

    expect(await client(server.port).get('kept')).toBeNull();
  });

  it.each([
    { appendonly: true, left: 'written' },
    { appendonly: false, left: null },
  ])('has after a kill what the append-only file kept ($appendonly: $left)', async ({ appendonly, left }) => {
    const server = await redisServer({ appendonly });
    await client(server.port).set('value', 'written');

    await server.kill();
    await server.restart();

    expect(await client(server.port).get('value')).toBe(left);
  });

  it('freezes, and runs after resume() what a client has already given up', async () => {
    const server = await redisServer();
    const redis = client(server.port, { commandTimeout: 100, retry: true });
    await redis.set('counter', 0);

    await server.pause();
    await expect(redis.incr('counter')).rejects.toThrow('timed out');
    server.resume();

    await eventually(async () => (await redis.get('counter')) === '1', 'the abandoned INCR ran all the same');
  });

  it('stops even while it is frozen', async () => {
    const server = await RedisServer.start();
    const { pid } = server;
    await server.pause();

    await server.stop();

    expect(isAlive(pid)).toBe(false);
  });

  it.skipIf(!RedisServer.canFakeTime())('moves its clock forwards and back, relative to where it is', async () => {
    const server = await redisServer({ fakeTime: true });
    const redis = client(server.port);
    const aheadMs = async (): Promise<number> => {
      const [seconds, micros] = await redis.time();
      return Number(seconds) * 1000 + Number(micros) / 1000 - Date.now();
    };
    // The two clocks are read one after the other, with a round trip between them.
    expect(Math.abs(await aheadMs())).toBeLessThan(200);

    await server.shiftClock(3_600_000);
    expect(Math.abs((await aheadMs()) - 3_600_000)).toBeLessThan(200);

    await server.shiftClock(-7_200_000);
    expect(server.clockShiftMs).toBe(-3_600_000);
    expect(Math.abs((await aheadMs()) + 3_600_000)).toBeLessThan(200);
  });
});

describe('NatsServer', () => {
  async function natsServer(options: Parameters<typeof NatsServer.start>[0] = {}): Promise<NatsServer> {
    const server = await NatsServer.start(options);
    cleanups.push(() => server.stop());
    return server;
  }

  async function natsClient(server: NatsServer) {
    const connection = await connect({ servers: server.url });
    cleanups.push(() => connection.close());
    return connection;
  }

  it.each([
    { keepData: true, left: 'value' },
    { keepData: false, left: undefined },
  ])('comes back on the same port (keepData: $keepData)', async ({ keepData, left }) => {
    const server = await natsServer();
    const before = await natsClient(server);
    const bucket = await before.jetstream().views.kv('support');
    await bucket.put('key', 'value');
    await before.close();

    await server.restart({ keepData });

    const after = await (await natsClient(server)).jetstream().views.kv('support');
    expect((await after.get('key'))?.string()).toBe(left);
  });

  it('runs without JetStream', async () => {
    const connection = await natsClient(await natsServer({ jetstream: false }));

    expect(connection.info?.jetstream ?? false).toBe(false);
    await expect(connection.jetstreamManager()).rejects.toMatchObject({ code: '503' });
  });

  it('freezes and resumes', async () => {
    const server = await natsServer();
    const connection = await natsClient(server);

    await server.pause();
    const flushed = connection.flush();
    expect(await outcomeWithin(50, flushed)).toBe('pending');
    server.resume();

    expect(await outcomeWithin(5000, flushed)).toBe('settled');
  });
});

describe('ServerProcess', () => {
  it('leaves no server and no directory behind when its test process is killed, even a frozen one', async () => {
    const { testProcess, serverPid, directory } = await startInProcessOfItsOwn();
    expect(existsSync(directory)).toBe(true);

    testProcess.kill('SIGKILL');

    await eventually(() => !existsSync(directory), 'the directory is removed');
    await eventually(() => !isAlive(serverPid), 'the server is gone');
  });

  /** A node process that stands in for a test run, with a frozen child that stands in for a server. */
  async function startInProcessOfItsOwn() {
    const source = readFileSync(new URL('../support/server-process.ts', import.meta.url), 'utf8');
    const { module, target } = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
    const { outputText } = ts.transpileModule(source, { compilerOptions: { module, target } });
    const script = `${outputText}
      const server = await ServerProcess.create('orphan');
      await server.launch({ binary: 'sleep', args: ['600'], isReady: async () => true });
      await server.pause();
      console.log(JSON.stringify({ serverPid: server.pid, directory: server.directory }));`;
    const testProcess = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    cleanups.push(() => testProcess.kill('SIGKILL'));
    const [line] = (await once(testProcess.stdout, 'data')) as [Buffer];
    const { serverPid, directory } = JSON.parse(line.toString()) as { serverPid: number; directory: string };
    return { testProcess, serverPid, directory };
  }
});
