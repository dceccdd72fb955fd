import type { ServerInterceptor } from '@grpc/grpc-js';
import type { DynamicModule, ExecutionContext } from '@nestjs/common';
import type { Request as ExpressRequest, RequestHandler } from 'express';
import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import type { Context as HonoContext, MiddlewareHandler } from 'hono';
import type { Context as KoaContext, Middleware } from 'koa';
import type { Dispatcher } from 'undici';
import { expectTypeOf, it } from 'vitest';
import type { RawData, WebSocket } from 'ws';
import type * as express from '../../src/middleware/express.js';
import type * as fastify from '../../src/middleware/fastify.js';
import type * as grpc from '../../src/middleware/grpc.js';
import type * as hono from '../../src/middleware/hono.js';
import type * as koa from '../../src/middleware/koa.js';
import type * as nest from '../../src/middleware/nest.js';
import type * as socket from '../../src/middleware/socket.js';
import type * as outbound from '../../src/outbound/fetch.js';
import type * as undici from '../../src/outbound/undici.js';

// Checked by `npm run typecheck`; at run time these say nothing.

type KeyOf<Options> = Options extends { readonly key?: (request: infer Request) => unknown } ? Request : never;

it('each adaptor is what its framework takes, and its functions get what its handlers get', () => {
  expectTypeOf<ReturnType<typeof express.rateLimit>>().toEqualTypeOf<RequestHandler>();
  expectTypeOf<KeyOf<Parameters<typeof express.rateLimit>[1]>>().toEqualTypeOf<ExpressRequest>();
  expectTypeOf<typeof fastify.rateLimit>().toExtend<FastifyPluginAsync<fastify.FastifyRateLimitOptions>>();
  expectTypeOf<KeyOf<fastify.FastifyRateLimitOptions>>().toEqualTypeOf<FastifyRequest>();
  expectTypeOf<ReturnType<typeof koa.rateLimit>>().toEqualTypeOf<Middleware>();
  expectTypeOf<KeyOf<Parameters<typeof koa.rateLimit>[1]>>().toEqualTypeOf<KoaContext>();
  expectTypeOf<ReturnType<typeof hono.rateLimit>>().toEqualTypeOf<MiddlewareHandler>();
  expectTypeOf<KeyOf<hono.HonoRateLimitOptions>>().toEqualTypeOf<HonoContext>();
  expectTypeOf<ReturnType<typeof nest.HeadgateModule.forRoot>>().toEqualTypeOf<DynamicModule>();
  expectTypeOf<KeyOf<nest.NestRateLimitOptions>>().toEqualTypeOf<ExecutionContext>();
  expectTypeOf<ReturnType<typeof grpc.rateLimit>>().toEqualTypeOf<ServerInterceptor>();
  expectTypeOf<KeyOf<grpc.GrpcRateLimitOptions>>().toEqualTypeOf<grpc.GrpcCall>();
  expectTypeOf<ReturnType<typeof undici.rateLimit>>().toEqualTypeOf<Dispatcher.DispatcherComposeInterceptor>();
});

it('a socket of ws is one whose messages can be limited, and the global fetch can be wrapped', () => {
  expectTypeOf<WebSocket>().toExtend<socket.MessageSocket<RawData>>();
  expectTypeOf<typeof globalThis.fetch>().toExtend<outbound.Fetch>();
});

it('an option that makes no sense is seen where it is written', () => {
  // @ts-expect-error no such dialect
  const dialect: Parameters<typeof express.rateLimit>[1] = { policy: 'api', headers: 'draft-9' };
  // @ts-expect-error a policy has to be named
  const nameless: Parameters<typeof koa.rateLimit>[1] = {};
  // @ts-expect-error fields of HTTP are not told in gRPC
  const fields: grpc.GrpcRateLimitOptions = { policy: 'api', headers: 'legacy' };
  expectTypeOf([dialect, nameless, fields]).toBeArray();
});
