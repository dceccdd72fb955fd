import { InvalidOptionError } from '../index.js';

/** One end of an IPC channel, as much of it as is needed: `process` in a worker, a `ChildProcess` in its parent. */
export interface Channel {
  readonly connected: boolean;
  send(message: unknown, handle: undefined, options: undefined, sent: (error: Error | null) => void): boolean;
  on(event: 'message', listener: (message: unknown) => void): unknown;
  on(event: 'disconnect', listener: () => void): unknown;
  off(event: 'message', listener: (message: unknown) => void): unknown;
  off(event: 'disconnect', listener: () => void): unknown;
}

/** Sends, and tells whether that could be tried. A channel that is closing is no error: whoever waits has deadlines. */
export function post(channel: Channel, message: unknown): boolean {
  if (!channel.connected) return false;
  try {
    // With a callback, an error of the channel goes there, instead of becoming an 'error' event that nobody handles.
    channel.send(message, undefined, undefined, () => {});
    return true;
  } catch {
    return false;
  }
}

/**
 * The channel to the process that forked this one.
 *
 * @throws InvalidOptionError where this process was not forked with one.
 */
export function parentChannel(user: string): Channel {
  if (typeof process.send === 'function') return process as Channel;
  throw new InvalidOptionError(
    `Expected \`${user}\` to be used in a worker of a Node cluster, or another process forked with an IPC channel, ` +
      'got a process without one.',
  );
}
