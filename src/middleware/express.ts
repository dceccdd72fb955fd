import type { Request, RequestHandler } from 'express';
import type { Limiter } from '../index.js';
import type { AddressSource } from './client-address.js';
import { Gate } from './gate.js';
import type { GateOptions } from './gate-options.js';
import { passNode, sendNode } from './node-exchange.js';

export type { DeniedRequest, GateOptions, PolicyChoice, PolicyRule } from './gate-options.js';
export { rulingsOf } from './rulings-of.js';
export type { SetupWarning, SetupWarningCode } from './setup-warnings.js';

const ADDRESSES: AddressSource<Request> = {
  addressOf: ({ ip }) => ip,
  trustOf: ({ app }) => {
    const trusted: unknown = app.get('trust proxy');
    if (trusted === true) return 'everybody';
    return trusted === undefined || trusted === false || trusted === 0 ? 'nobody' : 'some';
  },
  forwardedFor: ({ headers }) => headers['x-forwarded-for'],
};

/**
 * Middleware for Express 4 and 5. The default key is `req.ip`, so it follows the app's `trust proxy` setting.
 *
 *     app.use(rateLimit(limiter, { policy: 'api' }));
 *
 * @throws {InvalidOptionError} {@link UnknownPolicyError}
 */
export function rateLimit(limiter: Limiter, options: GateOptions<Request>): RequestHandler {
  const gate = new Gate(limiter, options, ADDRESSES);
  return (request, response, next) => {
    passNode(gate, request, { incoming: request, outgoing: response })
      .then((passage) => {
        if (passage.outcome === 'denied') sendNode(response, passage.response);
        if (passage.outcome === 'allowed') response.set(passage.headers);
        return passage.outcome === 'allowed' || passage.outcome === 'skipped';
      })
      // A step of its own: what goes wrong up to here is for `next`, and what goes wrong in it is not.
      .then((goesOn) => {
        if (goesOn) next();
      }, next);
  };
}
