import { createServer, type IncomingMessage } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import { rateLimit, rulingsOf, type SetupWarning, type TrustOptions } from '../../src/middleware/node.js';
import { listening, middlewareContract } from './middleware.js';

middlewareContract({
  name: 'node:http',
  hasAddresses: true,
  header: (request: IncomingMessage, name) => request.headers[name] as string | undefined,
  async serve(limiter, options, app) {
    const gates = options.map((one) => rateLimit(limiter, one));
    const server = createServer((request, response) =>
      app.inContext(async () => {
        try {
          for (const mayPass of gates) if (!(await mayPass(request, response))) return;
          response.end(await app.handle());
        } catch (error) {
          app.failed(error);
          response.writeHead(500).end();
        }
      }),
    );
    return listening(server.listen(0, '127.0.0.1'));
  },
});

const toClose: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close();
});

async function keysOf(trust: TrustOptions, forwardedFor: readonly string[]) {
  const limiter = await createLimiter({
    policies: [{ name: 'api', local: { rate: 1, burst: 100 } }],
    telemetry: false,
  });
  const warnings: SetupWarning[] = [];
  const mayPass = rateLimit(limiter, { policy: 'api', onWarning: (warning) => warnings.push(warning), ...trust });
  const server = createServer(async (request, response) => {
    if (await mayPass(request, response)) response.end(rulingsOf(request)[0]?.key);
  });
  const served = await listening(server.listen(0, '127.0.0.1'));
  toClose.push(
    () => limiter.close(),
    () => served.close(),
  );
  const keys: string[] = [];
  for (const field of forwardedFor) {
    keys.push(await (await fetch(served.url, { headers: { 'x-forwarded-for': field } })).text());
  }
  return { keys, warnings };
}

it('a bare server takes the first address from the right that is no trusted proxy, however long the chain (C121)', async () => {
  const { keys, warnings } = await keysOf({ trustedProxies: ['loopback', '10.0.0.0/8'] }, [
    '192.0.2.1',
    '192.0.2.1, 10.1.1.1',
    '198.51.100.7, 192.0.2.1, 10.2.2.2, 10.1.1.1',
    'garbage, 10.1.1.1',
    '2001:db8:1:2::3',
  ]);
  expect(keys).toEqual(['192.0.2.1', '192.0.2.1', '192.0.2.1', '10.1.1.1', '2001:db8:1:2::/64']);
  expect(warnings).toEqual([]);
});

it('a bare server trusts nobody by default', async () => {
  const { keys, warnings } = await keysOf({}, ['192.0.2.1', '192.0.2.2']);
  expect(keys).toEqual(['127.0.0.1', '127.0.0.1']);
  expect(warnings.map(({ code }) => code)).toEqual(['HEADGATE_FORWARDED_FOR_IGNORED']);
});
