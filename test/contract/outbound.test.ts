import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request as undiciRequest } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { MemoryCeiling, storeClock } from '../../src/ceiling/memory-ceiling.js';
import { createLimiter } from '../../src/create-limiter.js';
import type { Limiter, LimiterOptions } from '../../src/index.js';
import { limitedFetch, type OutboundOptions } from '../../src/outbound/fetch.js';
import { rateLimit } from '../../src/outbound/undici.js';
import { systemTime } from '../../src/time.js';
import { eventually } from '../support/eventually.js';
import { listening } from './middleware.js';

const toClose: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close();
});

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

/** A client as the suite drives it. */
type Send = (url: string, signal?: AbortSignal) => Promise<Answer>;

const CLIENTS: Record<string, (limiter: Limiter, options: OutboundOptions) => Send> = {
  fetch: (limiter, options) => {
    const send = limitedFetch(limiter, options);
    return async (url, signal) => {
      const response = await send(url, { signal: signal ?? null });
      return {
        status: response.status,
        retryAfter: response.headers.get('retry-after') ?? undefined,
        text: await response.text(),
      };
    };
  },
  undici: (limiter, options) => {
    const dispatcher = new Agent().compose(rateLimit(limiter, options));
    toClose.push(() => dispatcher.close());
    return async (url, signal) => {
      const { statusCode, headers, body } = await undiciRequest(url, { dispatcher, ...(signal && { signal }) });
      return {
        status: statusCode,
        retryAfter: headers['retry-after'] as string | undefined,
        text: await body.text(),
      };
    };
  },
};

async function upstream(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const arrivals: number[] = [];
  const server = createServer((request, response) => {
    arrivals.push(performance.now());
    answer(request, response);
  });
  const served = await listening(server.listen(0, '127.0.0.1'));
  toClose.push(() => served.close());
  return { url: served.url, arrivals };
}

async function limiterOf(rate: number, burst: number, options: Partial<LimiterOptions> = {}): Promise<Limiter> {
  const limiter = await createLimiter({
    policies: [{ name: 'upstream', ceiling: { rate, burst } }],
    telemetry: false,
    ...options,
  } as LimiterOptions<never, never>);
  toClose.push(() => limiter.close());
  return limiter;
}

describe.each(Object.entries(CLIENTS))('%s', (_name, client) => {
  it('keeps a whole fleet under one ceiling', async () => {
    const { url, arrivals } = await upstream((_request, response) => response.end('here'));
    const ceiling = new MemoryCeiling({ clock: storeClock(systemTime), newStore: 'full' });
    const fleet = await Promise.all(
      [1, 2, 3].map(async () => client(await limiterOf(50, 5, { ceiling }), { policy: 'upstream' })),
    );
    const answers = await Promise.all(fleet.flatMap((send) => Array.from({ length: 10 }, () => send(url))));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(answers[0]?.text).toBe('here');
    // Thirty requests, five of them at once: the last can have been let go no earlier than after half a second.
    const last = Math.max(...arrivals);
    expect(last - Math.min(...arrivals)).toBeGreaterThan(400);
  });

  it('sends nothing while the upstream has asked to be left alone', async () => {
    let calls = 0;
    const { url, arrivals } = await upstream((_request, response) => {
      calls += 1;
      if (calls === 1) response.writeHead(429, { 'Retry-After': '1' });
      response.end('x');
    });
    const send = client(await limiterOf(1_000, 1_000), { policy: 'upstream' });
    // What the upstream said is the caller's to see; only the next one is held.
    expect((await send(url)).status).toBe(429);
    expect((await send(url)).status).toBe(200);
    expect((arrivals[1] as number) - (arrivals[0] as number)).toBeGreaterThanOrEqual(990);
  });

  it('answers a request itself that can not be sent in time, as the upstream would have', async () => {
    const { url, arrivals } = await upstream((_request, response) => response.end('x'));
    const send = client(await limiterOf(0.01, 1), { policy: 'upstream', maxWaitMs: 10 });
    expect((await send(url)).status).toBe(200);
    const { status, retryAfter, text } = await send(url);
    expect(status).toBe(429);
    expect(Number(retryAfter)).toBeGreaterThan(90);
    expect(JSON.parse(text)).toMatchObject({ status: 429, 'violated-policies': ['upstream'] });
    expect(arrivals).toHaveLength(1);
  });

  it('lets go of a request that is aborted while it waits', async () => {
    const { url, arrivals } = await upstream((_request, response) => response.end('x'));
    const limiter = await limiterOf(0.01, 1);
    const send = client(limiter, { policy: 'upstream', maxWaitMs: 3_600_000 });
    await send(url);
    const abort = new AbortController();
    const waiting = send(url, abort.signal);
    waiting.catch(() => {});
    await eventually(() => limiter.stats()[0]?.waiting === 1, 'it waits');
    abort.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    expect(limiter.stats()[0]?.waiting).toBe(0);
    expect(arrivals).toHaveLength(1);
  });

  it('hands on the errors of the connection and of its own functions', async () => {
    const limiter = await limiterOf(100, 100);
    const { url } = await upstream((_request, response) => response.destroy());
    await expect(client(limiter, { policy: 'upstream' })(url)).rejects.toThrow();
    const broken = client(limiter, {
      policy: 'upstream',
      key: () => {
        throw new Error('broken key');
      },
    });
    await expect(broken(url)).rejects.toThrow('broken key');
  });
});
