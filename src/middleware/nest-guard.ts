import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CanActivate, ExecutionContext, OnModuleInit } from '@nestjs/common';
import type { AbstractHttpAdapter, DiscoveryService, Reflector } from '@nestjs/core';
import type { Limiter } from '../index.js';
import type { AddressSource, ProxyTrust } from './client-address.js';
import { Gate } from './gate.js';
import type { GateOptions } from './gate-options.js';
import { RateLimitException } from './nest-filter.js';
import { passNode } from './node-exchange.js';

/** Under which name a route's own options are kept. */
export const ROUTE_LIMIT = Symbol('headgate route limit');

/** Options of the module: what holds for every route that says nothing else. */
export interface NestRateLimitOptions extends Partial<GateOptions<ExecutionContext>> {
  readonly limiter: Limiter;
  /** Whether every route is guarded. Default `true`; otherwise those with `@UseGuards(RateLimitGuard)`. */
  readonly everywhere?: boolean;
}

/** What a route has to say: options in place of the module's, or `false` for no limit. */
export type RouteRateLimit = Partial<GateOptions<ExecutionContext>> | false;

/** As far as Express's and Fastify's requests are alike, and where they differ. */
interface PlatformRequest {
  readonly ip?: string;
  readonly headers: IncomingMessage['headers'];
  /** Express. */
  readonly app?: { get?(name: string): unknown };
  /** Fastify: not there where no proxy is trusted. */
  readonly raw?: IncomingMessage;
  readonly ips?: readonly string[];
}

const ADDRESSES: AddressSource<ExecutionContext> = {
  addressOf: (context) => requestOf(context).ip,
  trustOf: (context) => trustOf(requestOf(context)),
  forwardedFor: (context) => requestOf(context).headers['x-forwarded-for'],
};

interface Nest {
  readonly reflector: Reflector;
  readonly httpAdapter: AbstractHttpAdapter;
  readonly discovery: DiscoveryService;
}

/** Limits HTTP routes. The default key is the request's `ip`, so it follows the platform's trusted proxies. */
export class RateLimitGuard implements CanActivate, OnModuleInit {
  readonly #limiter: Limiter;
  readonly #defaults: Partial<GateOptions<ExecutionContext>>;
  readonly #nest: Nest;
  readonly #gates = new Map<RouteRateLimit | undefined, Gate<ExecutionContext> | undefined>();

  /** @internal Made by `HeadgateModule`. */
  constructor({ limiter, everywhere: _, ...defaults }: NestRateLimitOptions, nest: Nest) {
    this.#limiter = limiter;
    this.#defaults = defaults;
    this.#nest = nest;
  }

  /** Makes every route's gate, so that a mistake in a decorator stops the start. */
  onModuleInit(): void {
    this.#gateOf(undefined);
    for (const { metatype, instance } of this.#nest.discovery.getControllers()) {
      if (typeof metatype !== 'function') continue;
      this.#gateOf(this.#nest.reflector.get<RouteRateLimit | undefined>(ROUTE_LIMIT, metatype));
      const prototype: object = Object.getPrototypeOf(instance ?? {});
      for (const { value } of Object.values(Object.getOwnPropertyDescriptors(prototype))) {
        if (typeof value === 'function') this.#gateOf(this.#nest.reflector.get(ROUTE_LIMIT, value));
      }
    }
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (context.getType() !== 'http') return true;
    const gate = this.#gateOf(
      this.#nest.reflector.getAllAndOverride<RouteRateLimit | undefined>(ROUTE_LIMIT, [
        context.getHandler(),
        context.getClass(),
      ]),
    );
    if (gate === undefined) return true;
    const request = requestOf(context);
    const response = context.switchToHttp().getResponse<ServerResponse & { readonly raw?: ServerResponse }>();
    const passage = await passNode(gate, context, {
      incoming: request.raw ?? (request as IncomingMessage),
      outgoing: response.raw ?? response,
    });
    // Nobody reads the answer to a client that hung up, but the handler must not run; the status is nginx's.
    if (passage.outcome === 'gone') throw new RateLimitException({ status: 499, headers: {}, body: '' });
    if (passage.outcome === 'skipped') return true;
    // Set here for denials too, so that they are there whichever filter writes the answer.
    const headers = passage.outcome === 'denied' ? passage.response.headers : passage.headers;
    for (const [name, value] of Object.entries(headers)) this.#nest.httpAdapter.setHeader(response, name, value);
    if (passage.outcome === 'denied') throw new RateLimitException(passage.response);
    return true;
  }

  #gateOf(route: RouteRateLimit | undefined): Gate<ExecutionContext> | undefined {
    if (!this.#gates.has(route)) {
      const own = { ...this.#defaults, ...(route || {}) };
      const isLimited = route !== false && own.policy !== undefined;
      this.#gates.set(
        route,
        isLimited ? new Gate(this.#limiter, own as GateOptions<ExecutionContext>, ADDRESSES) : undefined,
      );
    }
    return this.#gates.get(route);
  }
}

function requestOf(context: ExecutionContext): PlatformRequest {
  return context.switchToHttp().getRequest<PlatformRequest>();
}

function trustOf({ app, raw, ips }: PlatformRequest): ProxyTrust {
  if (raw !== undefined) return ips === undefined ? 'nobody' : 'some';
  const trusted = app?.get?.('trust proxy');
  if (trusted === true) return 'everybody';
  return trusted === undefined || trusted === false || trusted === 0 ? 'nobody' : 'some';
}
