import type { IncomingMessage } from 'node:http';
import { InvalidOptionError, show } from '../errors.js';
import type { LimitResponse, Ruling } from '../http/index.js';
import type { Limiter } from '../index.js';
import type { AddressSource } from './client-address.js';
import { Gate } from './gate.js';
import type { GateOptions } from './gate-options.js';
import { nodeAddresses, type TrustOptions } from './node-exchange.js';

export type { DeniedRequest, GateOptions, PolicyChoice, PolicyRule } from './gate-options.js';
export type { TrustOptions } from './node-exchange.js';
export type { SetupWarning, SetupWarningCode } from './setup-warnings.js';

/** What is asked of a WebSocket of the server's side: that of `ws`, or one that is like it. */
export interface MessageSocket<Data> {
  on(event: 'message', listener: (data: Data, isBinary: boolean) => void): unknown;
  on(event: 'close', listener: () => void): unknown;
  pause(): void;
  resume(): void;
  close(code: number, reason: string): void;
}

/** A message that has come in, and over what. */
export interface SocketMessage<Data, Socket = MessageSocket<Data>> {
  readonly socket: Socket;
  /** The request that became the socket. */
  readonly request: IncomingMessage;
  readonly data: Data;
  readonly isBinary: boolean;
}

/** A message that was denied: why, and when to come back. */
export interface DeniedMessage<Data, Socket> extends SocketMessage<Data, Socket> {
  readonly rulings: readonly Ruling[];
  readonly retryAfterMs: number | undefined;
}

/** Options for messages. What is told in HTTP fields is not told here. */
export interface SocketRateLimitOptions<Data, Socket>
  extends Omit<GateOptions<SocketMessage<Data, Socket>>, 'headers' | 'partition' | 'response' | 'settle'>,
    TrustOptions {
  /**
   * What becomes of a socket whose message was denied: `'close'` it (1013, "try again later", with the time as the
   * reason), `'drop'` the message and go on, or call a function. Default `'close'`.
   */
  readonly denied?: 'close' | 'drop' | ((denied: DeniedMessage<Data, Socket>) => void);
  /** Told what `key`, `cost`, `skip`, `policy` or the listener threw; the socket is closed (1011). Default: a warning. */
  readonly onError?: (error: Error) => void;
}

/** Listens to the messages of a socket that the limit lets pass, in their order. */
export type LimitedMessages<Data, Socket> = (
  socket: Socket,
  request: IncomingMessage,
  listener: (data: Data, isBinary: boolean) => unknown,
) => void;

const INTERNAL_ERROR = 1011;
const TRY_AGAIN_LATER = 1013;

/**
 * Limits the messages of WebSockets. While one waits for its answer the socket is paused, so that a fast sender fills its
 * own buffers and not this process's.
 *
 *     const onMessage = rateLimit(limiter, { policy: 'messages' });
 *     server.on('connection', (socket, request) => onMessage(socket, request, (data) => { … }));
 *
 * The default key is the address of the request that became the socket.
 *
 * @throws {InvalidOptionError} {@link UnknownPolicyError}
 */
export function rateLimit<Data, Socket extends MessageSocket<Data> = MessageSocket<Data>>(
  limiter: Limiter,
  options: SocketRateLimitOptions<Data, Socket>,
): LimitedMessages<Data, Socket> {
  const { denied = 'close', onError = (error) => process.emitWarning(error), trustedProxies = [], ...rest } = options;
  if (denied !== 'close' && denied !== 'drop' && typeof denied !== 'function') {
    throw new InvalidOptionError(`Expected \`denied\` to be 'close', 'drop' or a function, got ${show(denied)}.`);
  }
  const gate = new Gate(limiter, { ...rest, headers: [] }, addresses<Data, Socket>(trustedProxies));
  return (socket, request, listener) => {
    const gone = new AbortController();
    let waiting = 0;
    let last = Promise.resolve();
    const handle = async (message: SocketMessage<Data, Socket>): Promise<void> => {
      if (gone.signal.aborted) return;
      const passage = await gate.pass(message, message, gone.signal);
      if (passage.outcome === 'gone') return;
      if (passage.outcome === 'denied') deny(denied, message, passage);
      // Not awaited: what one message takes to handle is no reason to hold up the next.
      else Promise.resolve(listener(message.data, message.isBinary)).catch(failed);
    };
    const failed = (error: Error): void => {
      gone.abort();
      socket.close(INTERNAL_ERROR, '');
      onError(error);
    };
    socket.on('close', () => gone.abort());
    socket.on('message', (data, isBinary) => {
      waiting += 1;
      if (waiting === 1) socket.pause();
      last = last
        .then(() => handle({ socket, request, data, isBinary }))
        .catch(failed)
        .then(() => {
          waiting -= 1;
          if (waiting === 0) socket.resume();
        });
    });
  };
}

function deny<Data, Socket extends MessageSocket<Data>>(
  denied: NonNullable<SocketRateLimitOptions<Data, Socket>['denied']>,
  message: SocketMessage<Data, Socket>,
  { response, rulings }: { readonly response: LimitResponse; readonly rulings: readonly Ruling[] },
): void {
  const { retryAfterMs } = response;
  if (typeof denied === 'function') denied({ ...message, rulings, retryAfterMs });
  if (denied !== 'close') return;
  const seconds = response.headers['Retry-After'];
  message.socket.close(TRY_AGAIN_LATER, seconds === undefined ? '' : `Retry in ${seconds} s.`);
}

function addresses<Data, Socket>(trustedProxies: readonly string[]): AddressSource<SocketMessage<Data, Socket>> {
  const { addressOf, trustOf, forwardedFor } = nodeAddresses({ trustedProxies });
  return {
    addressOf: ({ request }) => addressOf(request),
    trustOf: ({ request }) => trustOf(request),
    forwardedFor: ({ request }) => forwardedFor(request),
  };
}
