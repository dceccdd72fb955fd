import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { InvalidOptionError, show } from '../errors.js';
import type { Limiter } from '../index.js';
import type { AddressSource } from './client-address.js';
import { Gate } from './gate.js';
import type { GateOptions } from './gate-options.js';
import { passNode } from './node-exchange.js';

export type { DeniedRequest, GateOptions, PolicyChoice, PolicyRule } from './gate-options.js';
export { rulingsOf } from './rulings-of.js';
export type { SetupWarning, SetupWarningCode } from './setup-warnings.js';

/** Hooks in which a request can be limited: before its body is read, or once it is known who sends it. */
const HOOKS = ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const;

/** Options of the plugin: what holds for every route that says nothing else. */
export interface FastifyRateLimitOptions extends Partial<GateOptions<FastifyRequest>> {
  readonly limiter: Limiter;
  /** Default `'onRequest'`, the first. A `key` that needs the body or a user needs a later one. */
  readonly hook?: (typeof HOOKS)[number];
}

/** What a route says in `config.headgate`: options in place of the plugin's, or `false` for no limit. */
export type RouteRateLimit = Partial<GateOptions<FastifyRequest>> | false;

declare module 'fastify' {
  interface FastifyContextConfig {
    headgate?: RouteRateLimit;
  }
}

const ADDRESSES: AddressSource<FastifyRequest> = {
  addressOf: ({ ip }) => ip,
  // Fastify shows no more of its setting than this: there are no `ips` where no proxy is trusted.
  trustOf: ({ ips }) => (ips === undefined ? 'nobody' : 'some'),
  forwardedFor: ({ headers }) => headers['x-forwarded-for'],
};

/**
 * Plugin for Fastify 4 and 5. The default key is `request.ip`, so it follows the server's `trustProxy` setting. Requests
 * that no route takes are limited too.
 *
 *     await app.register(rateLimit, { limiter, policy: 'api' });
 *     app.get('/search', { config: { headgate: { policy: 'search', cost: 5 } } }, handler);
 *
 * @throws {InvalidOptionError} {@link UnknownPolicyError} from `register`, and from the route that has such a `config`
 */
export async function rateLimit(app: FastifyInstance, options: FastifyRateLimitOptions): Promise<void> {
  const { limiter, hook = 'onRequest', ...given } = options;
  const defaults = withoutRegisterOptions(given);
  if (!HOOKS.includes(hook)) {
    throw new InvalidOptionError(`Expected \`hook\` to be one of ${HOOKS.join(', ')}, got ${show(hook)}.`);
  }
  const gates = new Map<RouteRateLimit | undefined, Gate<FastifyRequest> | undefined>();
  const makeGate = (route: RouteRateLimit | undefined): void => {
    if (gates.has(route)) return;
    const own = { ...defaults, ...(route || {}) };
    gates.set(route, route === false || own.policy === undefined ? undefined : gateOf(limiter, own as never));
  };
  makeGate(undefined);
  // Made when the route is, so that a mistake in its config stops the start.
  app.addHook('onRoute', ({ config }) => makeGate(config?.headgate));
  const limit = async (request: FastifyRequest, reply: FastifyReply) => {
    const route = request.routeOptions.config?.headgate;
    // A route that was there before this plugin has not been seen yet.
    makeGate(route);
    const gate = gates.get(route);
    return gate && pass(gate, request, reply);
  };
  // Each overload of addHook knows one name; this one calls what all of them have in common.
  (app.addHook as (name: string, hook: typeof limit) => unknown)(hook, limit);
}

/** Hooks of this plugin hold for the instance it is registered on, as those of fastify-plugin do. */
Object.assign(rateLimit, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'headgate',
  [Symbol.for('plugin-meta')]: { name: 'headgate', fastify: '>=4' },
});

/** Without what `register` itself takes. */
function withoutRegisterOptions<T extends object>(options: T): T {
  const { prefix, logLevel, logSerializers, ...rest } = options as T & Record<string, unknown>;
  return rest as T;
}

function gateOf(limiter: Limiter, options: GateOptions<FastifyRequest>): Gate<FastifyRequest> {
  return new Gate(limiter, options, ADDRESSES);
}

async function pass(gate: Gate<FastifyRequest>, request: FastifyRequest, reply: FastifyReply) {
  const passage = await passNode(gate, request, { incoming: request.raw, outgoing: reply.raw });
  switch (passage.outcome) {
    case 'gone':
      return reply.hijack();
    case 'denied':
      return reply.code(passage.response.status).headers(passage.response.headers).send(passage.response.body);
    case 'allowed':
      reply.headers(passage.headers);
      return undefined;
    case 'skipped':
      return undefined;
  }
}
