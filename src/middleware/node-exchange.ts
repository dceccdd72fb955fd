import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LimitResponse } from '../http/index.js';
import { type TrustedProxies, trustedProxies } from '../key/index.js';
import type { AddressSource } from './client-address.js';
import type { Gate, Passage } from './gate.js';
import { HangUp } from './hang-up.js';

/** Takes a Node request through a gate; the wait ends when the client hangs up. */
export async function passNode<Request>(
  gate: Gate<Request>,
  request: Request,
  { incoming, outgoing }: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse },
): Promise<Passage> {
  const passage = await gate.pass(request, incoming, new HangUp(outgoing));
  // Somebody else has answered while it waited, such as a time limit: there is nothing left to say or do.
  if (outgoing.headersSent) return { outcome: 'gone' };
  if (passage.outcome === 'allowed') settleAtEnd(passage.settle, outgoing);
  return passage;
}

function settleAtEnd(settle: (Passage & { outcome: 'allowed' })['settle'], outgoing: ServerResponse): void {
  if (settle === undefined) return;
  // It comes last in any case, whether all was sent or the client has hung up.
  outgoing.once('close', () => settle({ status: outgoing.statusCode, finished: outgoing.writableFinished }));
}

/** Answers a denied request. */
export function sendNode(outgoing: ServerResponse, { status, headers, body }: LimitResponse): void {
  outgoing.statusCode = status;
  for (const [name, value] of Object.entries(headers)) outgoing.setHeader(name, value);
  outgoing.end(body);
}

/** Which proxies to trust, for servers that have no setting of their own. */
export interface TrustOptions {
  /**
   * Proxies whose X-Forwarded-For is believed: addresses, networks (`10.0.0.0/8`), or `loopback`, `link-local`,
   * `private`. Default: none, and the address is that of the connection.
   */
  readonly trustedProxies?: readonly string[];
}

/** Addresses of requests on a bare Node server. */
export function nodeAddresses({ trustedProxies: ranges = [] }: TrustOptions): AddressSource<IncomingMessage> {
  const proxies: TrustedProxies = trustedProxies(ranges);
  return {
    addressOf: ({ socket, headers }) => {
      const peer = socket.remoteAddress;
      return peer === undefined ? undefined : proxies.clientOf(peer, hopsOf(headers['x-forwarded-for']));
    },
    trustOf: () => (ranges.length > 0 ? 'some' : 'nobody'),
    forwardedFor: ({ headers }) => headers['x-forwarded-for'],
  };
}

/** The addresses that an X-Forwarded-For field lists, farthest first. */
export function hopsOf(field: string | readonly string[] | undefined | null): readonly string[] {
  if (field === undefined || field === null) return [];
  return (typeof field === 'string' ? field : field.join(',')).split(',');
}
