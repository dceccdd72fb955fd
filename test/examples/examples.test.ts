import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { RedisServer } from '../support/redis-server.js';
import { outputOf, Program } from './program.js';

async function redisUrl(): Promise<string> {
  const redis = await RedisServer.start();
  onTestFinished(() => redis.stop());
  return redis.url;
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
    const site = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.end(links.map((link) => `<a href="${link}">${link}</a>`).join('\n'));
    });
    site.listen(0, '127.0.0.1');
    await once(site, 'listening');
    onTestFinished(() => {
      site.close();
      site.closeAllConnections();
    });
    const start = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
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
