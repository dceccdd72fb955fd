import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { RedisServer } from '../support/redis-server.js';
import { outputOf, Program } from './program.js';

async function redisUrl(): Promise<string> {
  const redis = await RedisServer.start();
  onTestFinished(() => redis.stop());
  return redis.url;
}

/** A server for the program to ask, until the test ends; answers its address. */
async function upstream(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

// Of programs as people would write them, none waits longer than usual for a machine that is busy with other tests.
const PATIENCE = { timeout: 30_000, retry: 2 };

describe('docs/examples/express-api', () => {
  it('holds a limit of all clients together over two instances, and leaves /health alone', PATIENCE, async () => {
    const environment = { REDIS_URL: await redisUrl() };
    const instances = await Promise.all([1, 2].map(() => Program.serve('docs/examples/express-api.mjs', environment)));

    const statuses: number[] = [];
    for (let i = 0; i < 10; i += 1) {
      const { url } = instances[i % 2] as Program & { url: string };
      // Each from another client, as the proxy on this machine says.
      const headers = { 'x-forwarded-for': `192.0.2.${i}` };
      statuses.push((await fetch(`${url}/exports`, { method: 'POST', headers })).status);
      expect((await fetch(`${url}/health`)).status).toBe(200);
    }
    expect(statuses.filter((status) => status === 202)).toHaveLength(5);
    expect(statuses.filter((status) => status === 429)).toHaveLength(5);
  });
});

describe('docs/examples/fastify-api', () => {
  it('lets each tenant do what it has bought, and nobody else anything', PATIENCE, async () => {
    const { url } = await Program.serve('docs/examples/fastify-api.mjs', { REDIS_URL: await redisUrl() });
    const search = (key: string) => fetch(`${url}/search?q=river`, { headers: { 'x-api-key': key } });

    expect((await search('guessed')).status).toBe(401);
    const first = await search('secret-of-acme');
    expect([first.status, await first.json()]).toEqual([200, { found: 'river' }]);

    const started = performance.now();
    const passed = async (key: string) => {
      const answers = await Promise.all(Array.from({ length: 40 }, () => search(key)));
      return answers.filter(({ status }) => status === 200).length;
    };
    const ofAcme = await passed('secret-of-acme');
    const seconds = (performance.now() - started) / 1_000;
    // A burst of 60 and 10 a second, at 5 a search.
    expect(5 * ofAcme).toBeLessThanOrEqual(60 + 10 * seconds);
    expect(ofAcme).toBeGreaterThan(0);
    expect(await passed('secret-of-globex')).toBeGreaterThan(ofAcme);
  });
});

describe('docs/examples/crawler', () => {
  it('asks for every page of a site once, no faster than it may, in two processes', PATIENCE, async () => {
    const asked: string[] = [];
    const pages = Array.from({ length: 6 }, (_, i) => `/page-${i}`);
    const links = [...pages, '/page-0#part', 'https://example.org/elsewhere', 'mailto:nobody@example.org', 'http://%'];
    const start = await upstream((request, response) => {
      asked.push(request.url ?? '');
      response.end(links.map((link) => `<a href="${link}">${link}</a>`).join('\n'));
    });
    const environment = { REDIS_URL: await redisUrl() };

    const started = performance.now();
    const runs = await Promise.all([1, 2].map(() => outputOf(['docs/examples/crawler.mjs', start], environment)));
    const seconds = (performance.now() - started) / 1_000;

    for (const { code, stdout, stderr } of runs) {
      expect([code, stderr]).toEqual([0, '']);
      const fetched = stdout.trim().split('\n').sort();
      expect(fetched).toEqual(['/', ...pages].map((path) => `200 ${new URL(path, start).href}`).sort());
    }
    expect(asked).toHaveLength(2 * (1 + pages.length));
    // A ceiling of 2 and 5 a second for both of them together.
    expect(seconds).toBeGreaterThanOrEqual((asked.length - 2) / 5);
  });

  it('says how it is called', async () => {
    const { code, stderr } = await outputOf(['docs/examples/crawler.mjs', 'not a url']);
    expect([code, stderr]).toEqual([1, 'Usage: node docs/examples/crawler.mjs <url>\n']);
  });
});

describe('docs/examples/login', () => {
  it('lets few guesses at an account through, over all instances, and everybody else in', PATIENCE, async () => {
    const environment = { REDIS_URL: await redisUrl() };
    const instances = await Promise.all([1, 2].map(() => Program.serve('docs/examples/login.mjs', environment)));
    const logIn = (instance: number, credentials: object) =>
      fetch(`${instances[instance % 2]?.url}/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(credentials),
      });

    const guesses: Response[] = [];
    for (let i = 0; i < 8; i += 1) guesses.push(await logIn(i, { name: 'ada', password: `guess ${i}` }));
    expect(guesses.map(({ status }) => status).filter((status) => status === 401)).toHaveLength(5);
    const refused = guesses.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(3);
    for (const { headers } of refused) expect(Number(headers.get('retry-after'))).toBeGreaterThan(50);

    // The right password must wait as well, or it could be told from the wrong ones.
    expect((await logIn(0, { name: 'ada', password: 'lovelace' })).status).toBe(429);
    expect(await (await logIn(1, { name: 'grace', password: 'hopper' })).json()).toEqual({ welcome: 'grace' });
    expect((await logIn(1, { name: 'nobody', password: 'x' })).status).toBe(401);
    expect((await logIn(1, { name: ['ada'] })).status).toBe(400);
  });
});

describe('docs/examples/llm-gateway', () => {
  it('charges what a request has used, and makes a tenant wait that has used too much', PATIENCE, async () => {
    let status = 200;
    const model = await upstream((_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ choices: [], usage: { total_tokens: 1_500 } }));
    });
    const environment = { REDIS_URL: await redisUrl(), UPSTREAM_URL: model };
    const { url } = await Program.serve('docs/examples/llm-gateway.mjs', environment);
    const ask = (tenant: string) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-tenant': tenant },
        body: JSON.stringify({ messages: [{ role: 'user', content: 'Who drains a river?' }] }),
      });

    // 305 are reserved and 1,500 used: of 2,000 the second leaves a debt of 1,000 or so, at 10,000 a minute.
    const first = await ask('acme');
    expect(await first.json()).toMatchObject({ usage: { total_tokens: 1_500 } });
    expect((await ask('acme')).status).toBe(200);
    const third = await ask('acme');
    expect(third.status).toBe(429);
    expect(await third.json()).toMatchObject({ 'violated-policies': ['tokens'] });
    expect(Number(third.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect((await ask('globex')).status).toBe(200);

    status = 500;
    const failed = await ask('initech');
    expect([failed.status, await failed.json()]).toEqual([502, { error: 'The model answered 500.' }]);
  });
});
