import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Limiter } from '../index.js';
import { Gate } from './gate.js';
import type { GateOptions } from './gate-options.js';
import { nodeAddresses, passNode, sendNode, type TrustOptions } from './node-exchange.js';

export type { DeniedRequest, GateOptions, PolicyChoice, PolicyRule } from './gate-options.js';
export type { TrustOptions } from './node-exchange.js';
export { rulingsOf } from './rulings-of.js';
export type { SetupWarning, SetupWarningCode } from './setup-warnings.js';

/**
 * Whether a request may go on. Where not it has been answered already, or its client is gone.
 *
 * Rejects with what `key`, `cost`, `skip` or `policy` threw: answer such a request as your server answers its errors.
 */
export type RequestGate = (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;

/**
 * For servers of `node:http`, `node:https` and whatever hands on their requests.
 *
 *     const mayPass = rateLimit(limiter, { policy: 'api' });
 *     createServer(async (request, response) => {
 *       if (await mayPass(request, response)) response.end('hello');
 *     });
 *
 * @throws {InvalidOptionError} {@link UnknownPolicyError}
 */
export function rateLimit(limiter: Limiter, options: GateOptions<IncomingMessage> & TrustOptions): RequestGate {
  const { trustedProxies = [], ...rest } = options;
  const gate = new Gate(limiter, rest, nodeAddresses({ trustedProxies }));
  return async (incoming, outgoing) => {
    const passage = await passNode(gate, incoming, { incoming, outgoing });
    if (passage.outcome === 'denied') sendNode(outgoing, passage.response);
    if (passage.outcome === 'allowed') {
      for (const [name, value] of Object.entries(passage.headers)) outgoing.setHeader(name, value);
    }
    return passage.outcome === 'allowed' || passage.outcome === 'skipped';
  };
}
