import { createServer } from 'node:net';

/** Nodes of a Redis Cluster talk to each other at their own port + 10,000: no server may be put there. */
const LOWEST = 12_000;
const HIGHEST = 22_000;

/**
 * A port on 127.0.0.1 that nothing listens on now.
 *
 * Not simply `listen(0)`: that gives a port from the range the system also takes for outgoing connections. While a server
 * is down between two starts, a client that keeps reconnecting to such a port can be given the same number for its own
 * end, connect to itself, and keep the server from coming back. Redis Cluster also needs port + 10,000 below that range.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    if (await isFree(port)) return port;
  }
  throw new Error(`No free port found between ${LOWEST} and ${HIGHEST}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
