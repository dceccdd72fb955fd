import type { TestProject } from 'vitest/node';
import { NatsServer } from './nats-server.js';
import { RedisServer } from './redis-server.js';
import { requireServerBinary } from './server-binary.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** A Redis that all integration tests share: never freeze or stop it, and use keys of your own. */
    redisUrl: string;
    /** A NATS server with JetStream that all integration tests share, under the same rules. */
    natsUrl: string;
  }
}

export default async function startSharedServers(project: TestProject): Promise<() => Promise<void>> {
  exitWhenServersAreMissing();
  const redis = await RedisServer.start();
  const nats = await NatsServer.start().catch(async (error: unknown) => {
    await redis.stop();
    throw error;
  });
  project.provide('redisUrl', redis.url);
  project.provide('natsUrl', nats.url);
  return async () => {
    await Promise.all([redis.stop(), nats.stop()]);
  };
}

/** Thrown, the error would come wrapped in what Vitest says about a run without tests. The reader needs the one line. */
function exitWhenServersAreMissing(): void {
  try {
    requireServerBinary('redis-server', 'nats-server');
  } catch (error) {
    console.error((error as Error).message);
    process.exit(1);
  }
}
