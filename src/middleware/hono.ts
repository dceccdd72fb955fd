import type { Context, MiddlewareHandler } from 'hono';
import type { Limiter } from '../index.js';
import { trustedProxies } from '../key/index.js';
import type { AddressSource } from './client-address.js';
import { fetchResponse } from './fetch.js';
import { Gate } from './gate.js';
import type { GateOptions } from './gate-options.js';
import { hopsOf, type TrustOptions } from './node-exchange.js';

export type { DeniedRequest, GateOptions, PolicyChoice, PolicyRule } from './gate-options.js';
export type { TrustOptions } from './node-exchange.js';
export { rulingsOf } from './rulings-of.js';
export type { SetupWarning, SetupWarningCode } from './setup-warnings.js';

/** Options for Hono. */
export interface HonoRateLimitOptions extends GateOptions<Context>, TrustOptions {
  /**
   * Finds the connection of a request: the `getConnInfo` of your runtime's adapter. Default: that of
   * `@hono/node-server`; elsewhere this or `key` is needed.
   */
  readonly getConnInfo?: (context: Context) => { readonly remote: { readonly address?: string | undefined } };
}

/**
 * Middleware for Hono 4, on Node and wherever else it runs with `node:net`. The default key is the address of the
 * connection, or what `trustedProxies` have reported.
 *
 *     app.use(rateLimit(limiter, { policy: 'api' }));
 *
 * @throws {InvalidOptionError} {@link UnknownPolicyError}
 */
export function rateLimit(limiter: Limiter, options: HonoRateLimitOptions): MiddlewareHandler {
  const { getConnInfo, trustedProxies: ranges, ...rest } = options;
  const gate = new Gate<Context>(limiter, rest, addresses(options));
  return async (context, next) => {
    const request = context.req.raw;
    const passage = await gate.pass(context, request, request.signal);
    // Nobody reads this answer; the status is that of nginx for a client that hung up.
    if (passage.outcome === 'gone') return new Response(null, { status: 499 });
    if (passage.outcome === 'denied') return fetchResponse(passage.response);
    await next();
    if (passage.outcome === 'skipped') return;
    passage.settle?.({ status: context.res.status, finished: context.error === undefined });
    if (options.shadow) return;
    for (const [name, value] of Object.entries(gate.headersOf(request))) context.header(name, value);
  };
}

function addresses({ getConnInfo = nodeConnInfo, trustedProxies: ranges = [] }: HonoRateLimitOptions) {
  const proxies = trustedProxies(ranges);
  return {
    addressOf: (context) => {
      const peer = getConnInfo(context).remote.address;
      return peer === undefined ? undefined : proxies.clientOf(peer, hopsOf(context.req.header('x-forwarded-for')));
    },
    trustOf: () => (ranges.length > 0 ? 'some' : 'nobody'),
    forwardedFor: (context) => context.req.header('x-forwarded-for'),
  } satisfies AddressSource<Context>;
}

/** As `@hono/node-server/conninfo` has it, without a dependency on that package. */
function nodeConnInfo({ env }: Context): { remote: { address?: string | undefined } } {
  const { incoming } = (env ?? {}) as { incoming?: { socket?: { remoteAddress?: string } } };
  return { remote: { address: incoming?.socket?.remoteAddress } };
}
