import type { Context, Middleware } from 'koa';
import type { Limiter } from '../index.js';
import type { AddressSource } from './client-address.js';
import { Gate } from './gate.js';
import type { GateOptions } from './gate-options.js';
import { passNode } from './node-exchange.js';

export type { DeniedRequest, GateOptions, PolicyChoice, PolicyRule } from './gate-options.js';
export { rulingsOf } from './rulings-of.js';
export type { SetupWarning, SetupWarningCode } from './setup-warnings.js';

const ADDRESSES: AddressSource<Context> = {
  addressOf: ({ ip }) => ip,
  // With `proxy` and without `maxIpsCount` Koa takes the first address there is, which is the client's to write.
  trustOf: ({ app }) => (!app.proxy ? 'nobody' : app.maxIpsCount > 0 ? 'some' : 'everybody'),
  forwardedFor: ({ req }) => req.headers['x-forwarded-for'],
};

/**
 * Middleware for Koa 2 and 3. The default key is `ctx.ip`, so it follows `app.proxy` and `app.maxIpsCount`.
 *
 *     app.use(rateLimit(limiter, { policy: 'api' }));
 *
 * @throws {InvalidOptionError} {@link UnknownPolicyError}
 */
export function rateLimit(limiter: Limiter, options: GateOptions<Context>): Middleware {
  const gate = new Gate(limiter, options, ADDRESSES);
  return async (context, next) => {
    const passage = await passNode(gate, context, { incoming: context.req, outgoing: context.res });
    if (passage.outcome === 'gone') {
      context.respond = false;
    } else if (passage.outcome === 'denied') {
      context.status = passage.response.status;
      context.body = passage.response.body;
      context.set(passage.response.headers);
    } else {
      if (passage.outcome === 'allowed') context.set(passage.headers);
      await next();
    }
  };
}
