import { type DynamicModule, type FactoryProvider, Module, type ModuleMetadata, SetMetadata } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, DiscoveryModule, DiscoveryService, HttpAdapterHost, Reflector } from '@nestjs/core';
import { RateLimitFilter } from './nest-filter.js';
import { type NestRateLimitOptions, RateLimitGuard, ROUTE_LIMIT, type RouteRateLimit } from './nest-guard.js';

export type { DeniedRequest, GateOptions, PolicyChoice, PolicyRule } from './gate-options.js';
export { RateLimitException } from './nest-filter.js';
export { type NestRateLimitOptions, RateLimitGuard, type RouteRateLimit } from './nest-guard.js';
export { rulingsOf } from './rulings-of.js';
export type { SetupWarning, SetupWarningCode } from './setup-warnings.js';

const OPTIONS = Symbol('headgate options');

/** Options that other providers have a part in. */
export interface NestAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  readonly inject?: FactoryProvider['inject'];
  // biome-ignore lint/suspicious/noExplicitAny: Nest injects whatever is listed
  readonly useFactory: (...injected: any[]) => NestRateLimitOptions | Promise<NestRateLimitOptions>;
}

/** Sets limits of its own for a route or a controller; what it leaves out is as the module says. */
export const RateLimit = (options: Exclude<RouteRateLimit, false>) => SetMetadata(ROUTE_LIMIT, options);

/** Takes the limit off a route or a controller. */
export const NoRateLimit = () => SetMetadata(ROUTE_LIMIT, false);

/**
 * Module for NestJS 11 and 12, on Express or Fastify. Limits every HTTP route by a guard, unless a route says otherwise
 * by `@RateLimit(…)` or `@NoRateLimit()`.
 *
 *     HeadgateModule.forRoot({ limiter, policy: 'api' })
 */
// biome-ignore lint/complexity/noStaticOnlyClass: a Nest module is a class
export class HeadgateModule {
  static forRoot(options: NestRateLimitOptions): DynamicModule {
    return HeadgateModule.forRootAsync({ useFactory: () => options });
  }

  static forRootAsync({ imports = [], inject = [], useFactory }: NestAsyncOptions): DynamicModule {
    return {
      module: HeadgateModule,
      global: true,
      imports: [...imports, DiscoveryModule],
      providers: [
        { provide: OPTIONS, inject, useFactory },
        {
          provide: RateLimitGuard,
          inject: [OPTIONS, Reflector, HttpAdapterHost, DiscoveryService],
          useFactory: (
            given: NestRateLimitOptions,
            reflector: Reflector,
            { httpAdapter }: HttpAdapterHost,
            discovery: DiscoveryService,
          ) => new RateLimitGuard(given, { reflector, httpAdapter, discovery }),
        },
        {
          provide: APP_FILTER,
          inject: [HttpAdapterHost],
          useFactory: ({ httpAdapter }: HttpAdapterHost) => new RateLimitFilter(httpAdapter),
        },
        {
          provide: APP_GUARD,
          inject: [OPTIONS, RateLimitGuard],
          useFactory: ({ everywhere = true }: NestRateLimitOptions, guard: RateLimitGuard) =>
            everywhere ? guard : { canActivate: () => true },
        },
      ],
      exports: [RateLimitGuard],
    };
  }
}

// As decorators do, in a form that needs no compiler for them.
Module({})(HeadgateModule);
