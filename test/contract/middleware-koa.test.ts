import Koa, { type Context } from 'koa';
import Koa2 from 'koa2';
import { expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import { rateLimit, rulingsOf } from '../../src/middleware/koa.js';
import { listening, middlewareContract } from './middleware.js';

for (const [name, Version] of Object.entries({ 'Koa 3': Koa, 'Koa 2': Koa2 as typeof Koa })) {
  middlewareContract({
    name,
    hasAddresses: true,
    header: (context: Context, name) => context.get(name) || undefined,
    async serve(limiter, options, app) {
      const server = new Version();
      server.on('error', (error) => app.failed(error));
      server.use((_context, next) => app.inContext(next));
      for (const one of options) server.use(rateLimit(limiter, one));
      server.use(async (context) => {
        context.body = await app.handle();
      });
      return listening(server.listen(0, '127.0.0.1'));
    },
  });
}

it.each([
  [{ proxy: true, maxIpsCount: 1 }, '192.0.2.1', []],
  [{ proxy: true }, '198.51.100.7', ['HEADGATE_ANY_PROXY_TRUSTED']],
  [{}, '127.0.0.1', ['HEADGATE_FORWARDED_FOR_IGNORED']],
])(
  'Koa with %j takes the address that it gives, %s, and warns where clients can write it',
  async (settings, key, codes) => {
    const limiter = await createLimiter({
      policies: [{ name: 'api', local: { rate: 1, burst: 9 } }],
      telemetry: false,
    });
    const warnings: string[] = [];
    const app = new Koa(settings);
    app.use(rateLimit(limiter, { policy: 'api', onWarning: ({ code }) => warnings.push(code) }));
    app.use((context) => {
      context.body = rulingsOf(context.req)[0]?.key;
    });
    const served = await listening(app.listen(0, '127.0.0.1'));
    const response = await fetch(served.url, { headers: { 'x-forwarded-for': '198.51.100.7, 192.0.2.1' } });
    expect(await response.text()).toBe(key);
    expect(warnings).toEqual(codes);
    await served.close();
    await limiter.close();
  },
);
