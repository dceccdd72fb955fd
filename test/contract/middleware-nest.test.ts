import 'reflect-metadata';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Module,
} from '@nestjs/common';
import { type AbstractHttpAdapter, APP_FILTER, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterEach, expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import type { Limiter } from '../../src/index.js';
import {
  HeadgateModule,
  type NestRateLimitOptions,
  NoRateLimit,
  RateLimit,
  RateLimitException,
} from '../../src/middleware/nest.js';
import { type App, listening, middlewareContract } from './middleware.js';

/** Applies decorators to a class and its methods, as the compiler would. */
function decorate(target: new () => object, decorators: ClassDecorator[], methods: Record<string, MethodDecorator[]>) {
  for (const [name, each] of Object.entries(methods)) {
    const descriptor = Object.getOwnPropertyDescriptor(target.prototype, name) as PropertyDescriptor;
    for (const one of each) one(target.prototype, name, descriptor);
  }
  for (const one of decorators) one(target);
  return target;
}

async function nestOf(
  controller: new () => object,
  options: NestRateLimitOptions[],
  app?: App,
  platform: AbstractHttpAdapter = new ExpressAdapter(),
): Promise<INestApplication> {
  class Root {}
  Module({
    imports: options.map((one) => HeadgateModule.forRoot(one)),
    controllers: [controller],
    // One that catches everything, as many applications have.
    providers: app ? [{ provide: APP_FILTER, useValue: new FailureFilter(app) }] : [],
  })(Root);
  const nest = await NestFactory.create(Root, platform, { logger: false, abortOnError: false });
  if (app) {
    nest.use((_request: unknown, _response: unknown, next: () => void) => app.inContext(next));
  }
  return nest;
}

class FailureFilter {
  constructor(readonly app: App) {}

  catch(error: unknown, host: ArgumentsHost): void {
    this.app.failed(error);
    host.switchToHttp().getResponse().status(500).send();
  }
}
Catch(Error)(FailureFilter);

for (const [platform, makeAdapter] of Object.entries({
  Express: () => new ExpressAdapter(),
  Fastify: () => new FastifyAdapter({ forceCloseConnections: true }),
})) {
  middlewareContract({
    name: `NestJS on ${platform}`,
    hasAddresses: true,
    header: (context: ExecutionContext, name) => context.switchToHttp().getRequest().headers[name],
    async serve(limiter, options, app) {
      class Everything {
        async get(): Promise<string> {
          return app.handle();
        }
      }
      decorate(Everything, [Controller()], { get: [Get()] });
      const nest = await nestOf(
        Everything,
        options.map((one) => ({ limiter, ...one })),
        app,
        makeAdapter(),
      );
      await nest.listen(0, '127.0.0.1');
      const served = await listening(nest.getHttpServer());
      return { url: served.url, close: () => served.close().then(() => nest.close()) };
    },
  });
}

const toClose: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close();
});

async function limiterOfThree(): Promise<Limiter> {
  const limiter = await createLimiter({
    policies: [
      { name: 'api', local: { rate: 1, burst: 2, per: '1h' } },
      { name: 'search', local: { rate: 1, burst: 6, per: '1h' } },
    ],
    telemetry: false,
  });
  toClose.push(() => limiter.close());
  return limiter;
}

it('NestJS routes have limits of their own, or none, by decorators', async () => {
  class Books {
    list() {
      return 'list';
    }
    search() {
      return 'found';
    }
    health() {
      return 'well';
    }
  }
  decorate(Books, [Controller()], {
    list: [Get('/')],
    search: [Get('/search'), RateLimit({ policy: 'search', cost: 3 })],
    health: [Get('/health'), NoRateLimit()],
  });
  const nest = await nestOf(Books, [{ limiter: await limiterOfThree(), policy: 'api', key: () => 'me' }]);
  await nest.init();
  const served = await listening(nest.getHttpServer().listen(0, '127.0.0.1'));
  toClose.push(() => served.close().then(() => nest.close()));
  const ask = async (path: string) => (await fetch(new URL(path, served.url))).status;
  expect([await ask('/search'), await ask('/search'), await ask('/search')]).toEqual([200, 200, 429]);
  expect([await ask('/'), await ask('/'), await ask('/')]).toEqual([200, 200, 429]);
  expect([await ask('/health'), await ask('/health'), await ask('/health')]).toEqual([200, 200, 200]);
});

it("NestJS doesn't start with a mistake in a decorator", async () => {
  class Wrong {
    get() {
      return 'never';
    }
  }
  decorate(Wrong, [Controller()], { get: [Get('/'), RateLimit({ policy: 'serach' })] });
  const nest = await nestOf(Wrong, [{ limiter: await limiterOfThree() }]);
  await expect(nest.init()).rejects.toThrow('serach');
});

it('a filter of the application sees what the answer would have been', () => {
  const exception = new RateLimitException({ status: 429, headers: { 'Retry-After': '1' }, body: '{}' });
  expect(exception.getStatus()).toBe(429);
  expect(exception.limitResponse.headers['Retry-After']).toBe('1');
});
