import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { atEnd } from './at-end.mjs';

/** A redis-server of the benchmark's own, in memory only, on a free port of 127.0.0.1; gone after `stop()`. */
export async function startRedis() {
  const port = await freePort();
  const directory = await mkdtemp(join(tmpdir(), 'headgate-bench-'));
  const binary = process.env.HEADGATE_TEST_REDIS ?? 'redis-server';
  const settings = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    '--dir',
    directory,
  ];
  const server = spawn(binary, settings, { stdio: 'ignore' });
  const failed = once(server, 'error').then(([error]) => {
    throw new Error(`${binary} can't be started (npm run servers installs it): ${error.message}`);
  });
  failed.catch(() => {});
  const callOff = atEnd(() => {
    server.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });
  await Promise.race([untilAnswers(port), failed]);
  const client = new Redis(port, '127.0.0.1');
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    client,
    /** Microseconds of CPU the server has used. */
    async cpuMicros() {
      const info = await client.info('cpu');
      const seconds = (name) => Number(info.match(new RegExp(`${name}:([\\d.]+)`))[1]);
      return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6;
    },
    /** Calls and microseconds by command, since the last `CONFIG RESETSTAT`. */
    async commandStats() {
      const stats = {};
      for (const [, name, calls, usec] of (await client.info('commandstats')).matchAll(
        /cmdstat_([^:]+):calls=(\d+),usec=(\d+)/g,
      ))
        stats[name] = { calls: Number(calls), usec: Number(usec) };
      return stats;
    },
    async stop() {
      client.disconnect();
      if (server.exitCode === null && server.signalCode === null) {
        const gone = once(server, 'exit');
        server.kill('SIGKILL');
        await gone;
      }
      await rm(directory, { recursive: true, force: true });
      callOff();
    },
  };
}

async function untilAnswers(port) {
  for (let attempt = 0; attempt < 1_000; attempt++) {
    if (await accepts(port)) return;
    await sleep(10);
  }
  throw new Error('redis-server did not start within 10 s.');
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1');
    socket.once('connect', () => socket.end(() => resolve(true)));
    socket.once('error', () => resolve(false));
  });
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
