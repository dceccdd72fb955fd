import { connect } from 'node:net';

/**
 * Connects, says `send`, and tells whether the first bytes back contain `expected`. A server test needs no client
 * library to know that a server answers, and a client's reconnecting would hide that it does not.
 */
export function answers(port: number, send: string, expected: string, timeoutMs = 1000): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const finish = (result: boolean): void => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(timeoutMs, () => finish(false));
    socket.once('error', () => finish(false));
    socket.once('close', () => finish(false));
    socket.once('data', (chunk) => finish(chunk.toString('latin1').includes(expected)));
    if (send !== '') socket.write(send);
  });
}
