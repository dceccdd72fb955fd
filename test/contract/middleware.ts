import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import type { Limiter, LimiterOptions, PolicyDocument } from '../../src/index.js';
import type { GateOptions } from '../../src/middleware/gate-options.js';
import type { SetupWarning } from '../../src/middleware/setup-warnings.js';
import { systemTime } from '../../src/time.js';
import { peek } from '../../src/verb/one-limit.js';
import { eventually } from '../support/eventually.js';
import { RemoteCeiling } from '../support/remote-ceiling.js';
import { membersOf } from '../unit/http/ruled.js';

/** What is behind the gate, and what the framework's error path has seen. */
export interface App {
  /** Runs for each request that passes; answers the text of the response. */
  handle(): string | Promise<string>;
  failed(error: unknown): void;
  /** Runs the rest of a request in a context of its own; called first of all, where the framework has such a place. */
  inContext<T>(run: () => T): T;
}

/** An adaptor of a framework, as the suite drives it. */
export interface MiddlewareUnderTest {
  readonly name: string;
  /** Whether requests have an address, so that `key` may be left out. */
  readonly hasAddresses: boolean;
  /** Serves `app` on every path behind one gate for each of `options`, on a free port of 127.0.0.1. */
  // biome-ignore lint/suspicious/noExplicitAny: each framework has a request type of its own
  serve(limiter: Limiter, options: readonly GateOptions<any>[], app: App): Promise<Served>;
  /** A header of the request, as the framework's `key` function finds it. */
  // biome-ignore lint/suspicious/noExplicitAny: each framework has a request type of its own
  header(request: any, name: string): string | undefined;
}

export interface Served {
  readonly url: string;
  close(): Promise<unknown>;
}

/** Waits until a server listens, and tells where. */
export async function listening(server: Server): Promise<Served> {
  if (!server.listening) await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    close: () =>
      new Promise((closed) => {
        server.close(closed);
        server.closeAllConnections();
      }),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: each framework has a request type of its own
type Options = GateOptions<any>;

/** What holds for every adaptor, on a real server with a real client. */
export function middlewareContract(adaptor: MiddlewareUnderTest): void {
  const toClose: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of toClose.splice(0).reverse()) await close();
  });

  async function limiterOf(policies: readonly PolicyDocument[], options: Partial<LimiterOptions> = {}) {
    const limiter = await createLimiter({ policies, telemetry: false, ...options } as LimiterOptions<never, never>);
    toClose.push(() => limiter.close());
    return limiter;
  }

  interface Setup {
    readonly options: Options | readonly Options[];
    readonly handle?: App['handle'];
    readonly limiter?: Partial<LimiterOptions>;
  }

  async function start(policies: readonly PolicyDocument[], { options, handle, limiter: more }: Setup) {
    const limiter = await limiterOf(policies, more);
    const warnings: SetupWarning[] = [];
    const seen = { handled: 0, failures: [] as unknown[], contexts: [] as unknown[] };
    const context = new AsyncLocalStorage<number>();
    let requests = 0;
    const app: App = {
      handle: () => {
        seen.handled += 1;
        seen.contexts.push(context.getStore());
        return handle ? handle() : 'hello';
      },
      failed: (error) => seen.failures.push(error),
      inContext: (run) => {
        requests += 1;
        return context.run(requests, run);
      },
    };
    const gates = (Array.isArray(options) ? options : [options]) as readonly Options[];
    const served = await adaptor.serve(
      limiter,
      gates.map((one) => ({
        onWarning: (warning) => warnings.push(warning),
        ...(adaptor.hasAddresses ? {} : { key: byCaller }),
        ...one,
      })),
      app,
    );
    toClose.push(() => served.close());
    const get = (headers: Record<string, string> = {}, init: RequestInit = {}) =>
      fetch(served.url, { headers: { connection: 'close', ...headers }, ...init });
    return { limiter, get, seen, warnings, url: served.url };
  }

  const byCaller = (request: unknown): string => adaptor.header(request, 'x-caller') ?? 'somebody';
  const slow = (name: string, burst: number): PolicyDocument => ({ name, local: { rate: 1, burst, per: '1h' } });

  describe(adaptor.name, () => {
    it('lets a request pass, and tells it where it stands', async () => {
      const { get, seen } = await start([slow('api', 3)], { options: { policy: 'api' } });
      const response = await get();
      expect(response.status).toBe(200);
      expect(await response.text()).toBe('hello');
      expect(response.headers.get('ratelimit-policy')).toBe('"api";q=3;w=10800');
      expect(membersOf(response.headers.get('ratelimit') ?? '')).toEqual({ api: { r: 2, t: 7_200 } });
      expect(seen).toMatchObject({ handled: 1, failures: [] });
    });

    it('denies with 429, Retry-After and a problem, and does not run the handler', async () => {
      const { get, seen } = await start([slow('api', 1)], { options: { policy: 'api' } });
      await get();
      const response = await get();
      expect(response.status).toBe(429);
      const retryAfter = Number(response.headers.get('retry-after'));
      expect(retryAfter).toBeGreaterThan(3_590);
      expect(retryAfter).toBeLessThanOrEqual(3_600);
      expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json\b/);
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(membersOf(response.headers.get('ratelimit') ?? '')).toEqual({ api: { r: 0, t: retryAfter } });
      expect(await response.json()).toMatchObject({ status: 429, 'violated-policies': ['api'] });
      expect(seen).toMatchObject({ handled: 1, failures: [] });
    });

    it('lets exactly the limit pass of requests that come at once', async () => {
      const { get } = await start([slow('api', 5)], { options: { policy: 'api' } });
      const statuses = await Promise.all(Array.from({ length: 12 }, async () => (await get()).status));
      expect(statuses.filter((status) => status === 200)).toHaveLength(5);
      expect(statuses.filter((status) => status === 429)).toHaveLength(7);
    });

    it('does not touch what is skipped', async () => {
      const { get, limiter } = await start([slow('api', 1)], {
        options: { policy: 'api', skip: async (request) => adaptor.header(request, 'x-health') !== undefined },
      });
      for (let i = 0; i < 3; i++) {
        const response = await get({ 'x-health': '1' });
        expect(response.status).toBe(200);
        expect(response.headers.get('ratelimit')).toBeNull();
      }
      expect(limiter.stats()[0]).toMatchObject({ allowed: 0 });
    });

    it('limits by key and by cost, each a function', async () => {
      const { get } = await start([slow('api', 5)], {
        options: {
          policy: 'api',
          key: async (request) => byCaller(request),
          cost: (request) => Number(adaptor.header(request, 'x-cost') ?? '1'),
        },
      });
      expect((await get({ 'x-caller': 'alice', 'x-cost': '4' })).status).toBe(200);
      expect((await get({ 'x-caller': 'alice', 'x-cost': '2' })).status).toBe(429);
      expect((await get({ 'x-caller': 'alice' })).status).toBe(200);
      expect((await get({ 'x-caller': 'bob', 'x-cost': '5' })).status).toBe(200);
    });

    it('asks the policy that a function names, or none', async () => {
      const { get } = await start([slow('free', 1), slow('paid', 5)], {
        options: { policy: (request: unknown) => adaptor.header(request, 'x-plan'), key: byCaller },
      });
      const policyOf = async (headers: Record<string, string>) =>
        Object.keys(membersOf((await get(headers)).headers.get('ratelimit-policy') ?? undefined));
      expect(await policyOf({ 'x-plan': 'free' })).toEqual(['free']);
      expect(await policyOf({ 'x-plan': 'paid' })).toEqual(['paid']);
      expect(await policyOf({})).toEqual([]);
    });

    it.each(['in one gate', 'in two'])('applies several policies %s, and lists them all', async (how) => {
      const perSecond = { policy: 'minute', key: byCaller };
      const { get } = await start([slow('minute', 1), slow('day', 9)], {
        options: how === 'in two' ? [{ policy: 'day' }, perSecond] : { policy: ['day', perSecond] },
      });
      const first = await get({ 'x-caller': 'alice' });
      expect(membersOf(first.headers.get('ratelimit-policy') ?? '')).toEqual({
        day: { q: 9, w: 32_400 },
        minute: { q: 1, w: 3_600 },
      });
      expect(membersOf(first.headers.get('ratelimit') ?? '')).toMatchObject({ day: { r: 8 }, minute: { r: 0 } });
      const second = await get({ 'x-caller': 'alice' });
      expect(second.status).toBe(429);
      expect(await second.json()).toMatchObject({ 'violated-policies': ['minute'] });
    });

    it('charges all policies or none, and names each that denied, with the longest of their times (C116, C166)', async () => {
      const { get, limiter } = await start([slow('user', 9), slow('endpoint', 1), slow('day', 1)], {
        options: { policy: ['user', 'endpoint', 'day'] },
      });
      await get();
      for (let i = 0; i < 5; i++) {
        const response = await get();
        expect(response.status).toBe(429);
        expect(Object.keys(membersOf(response.headers.get('ratelimit-policy') ?? ''))).toEqual([
          'user',
          'endpoint',
          'day',
        ]);
        expect(await response.json()).toMatchObject({ 'violated-policies': ['endpoint', 'day'] });
      }
      expect(limiter.stats().map(({ policy, allowed }) => [policy, allowed])).toEqual([
        ['user', 1],
        ['endpoint', 1],
        ['day', 1],
      ]);
    });

    it('charges what a request has really cost once it is answered, and that once', async () => {
      let actual = 0;
      const { get, limiter, seen } = await start([slow('api', 5)], {
        options: { policy: 'api', cost: 2, key: () => 'one', settle: () => actual },
        handle: () => {
          if (actual === 3) throw new Error('broken handler');
          return 'hello';
        },
      });
      const left = () => peek(limiter.policy('api'), 'one').remaining;
      await get();
      await eventually(() => left() === 5, 'all of it has come back');
      actual = 1;
      await get();
      await eventually(() => left() === 4, 'one was kept');
      actual = 3;
      await get();
      await eventually(() => left() === 1, 'one more was charged, though the handler failed');
      expect(seen.failures).toHaveLength(1);
    });

    it('does not show the first request of a key a denial while its lease is fetched', async () => {
      const ceiling = new RemoteCeiling(systemTime, 10);
      const { get } = await start([{ name: 'api', ceiling: { rate: 10, burst: 10 } }], {
        options: { policy: 'api', key: byCaller },
        limiter: { ceiling, newStore: 'full' } as Partial<LimiterOptions>,
      });
      // A key of its own for each attempt, so that each is cold: a busy machine may miss the deadline of one call.
      let attempt = 0;
      await eventually(
        async () => (await get({ 'x-caller': `cold ${++attempt}` })).status === 200,
        'a cold key passes',
      );
    });

    it.each([
      ['deny', 503],
      ['allow', 200],
    ] as const)('answers by the outage mode while the store is down: %s, %i', async (mode, status) => {
      const ceiling = new RemoteCeiling(systemTime);
      ceiling.ready = false;
      const { get } = await start([{ name: 'api', ceiling: { rate: 10, burst: 10 }, outage: { mode } }], {
        options: { policy: 'api' },
        limiter: { ceiling, onTrouble: () => {} },
      });
      const response = await get();
      expect(response.status).toBe(status);
      if (status !== 503) return;
      expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect(await response.json()).toMatchObject({ status: 503, 'violated-policies': ['api'] });
    });

    it('leaves nobody waiting whose client has hung up, and does not run the handler for it', async () => {
      const { get, limiter, seen } = await start([{ name: 'api', local: { rate: 1, burst: 1, per: '10m' } }], {
        options: { policy: 'api', maxWaitMs: 3_600_000 },
      });
      await get();
      const hangUp = new AbortController();
      const waiting = get({}, { signal: hangUp.signal }).catch(() => 'hung up');
      await eventually(() => limiter.stats()[0]?.waiting === 1, 'the request waits');
      hangUp.abort();
      expect(await waiting).toBe('hung up');
      await eventually(() => limiter.stats()[0]?.waiting === 0, 'nobody waits');
      expect(seen).toMatchObject({ handled: 1, failures: [] });
      expect(limiter.stats()[0]).toMatchObject({ allowed: 1 });
    });

    it.each(['key', 'cost', 'skip', 'policy'] as const)('hands what `%s` throws to the error path', async (name) => {
      const broken = (): never => {
        throw new Error(`broken ${name}`);
      };
      const { get, seen } = await start([slow('api', 5)], { options: { policy: 'api', [name]: broken } });
      expect((await get()).status).toBe(500);
      expect(seen).toMatchObject({ handled: 0, failures: [{ message: `broken ${name}` }] });
    });

    it('is harmed by no answer that can not be sent: that is a 500, each time', async () => {
      const { get, seen } = await start([slow('api', 1)], {
        options: { policy: 'api', response: (response) => ({ ...response, headers: { 'X-Broken': 'a\nb' } }) },
      });
      await get();
      for (let i = 0; i < 2; i++) expect((await get()).status).toBe(500);
      expect(seen.handled).toBe(1);
    });

    it('runs a handler that fails once, and nothing after it (C182)', async () => {
      const { get, seen } = await start([slow('api', 5)], {
        options: { policy: 'api' },
        handle: () => {
          throw new Error('broken handler');
        },
      });
      expect((await get()).status).toBe(500);
      expect(seen).toMatchObject({ handled: 1, failures: [{ message: 'broken handler' }] });
    });

    it('continues each request in its own context after a wait (C175)', async () => {
      const { get, seen } = await start([{ name: 'api', local: { rate: 200, burst: 1 } }], {
        options: { policy: 'api', maxWaitMs: 10_000, key: () => 'one for all' },
      });
      const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await get()).status));
      expect(new Set(statuses)).toEqual(new Set([200]));
      expect(new Set(seen.contexts)).toEqual(new Set(Array.from({ length: 20 }, (_, i) => i + 1)));
    });

    it('only decides and counts in shadow', async () => {
      const { get, limiter } = await start([slow('api', 1)], { options: { policy: 'api', shadow: true } });
      await get();
      const response = await get();
      expect(response.status).toBe(200);
      expect(response.headers.get('ratelimit')).toBeNull();
      expect(limiter.stats()[0]).toMatchObject({ allowed: 1, deniedLocal: 1 });
    });

    it('answers as `response` says, in the dialect that was chosen', async () => {
      const { get } = await start([slow('api', 1)], {
        options: {
          policy: 'api',
          headers: ['draft-7', 'legacy'],
          response: ({ headers }) => ({
            status: 420,
            headers: { ...headers, 'Content-Type': 'text/plain', 'X-Calm': 'yes' },
            body: 'calm down',
          }),
        },
      });
      expect((await get()).headers.get('ratelimit')).toBe('limit=1, remaining=0, reset=3600');
      const response = await get();
      expect(response.status).toBe(420);
      expect(await response.text()).toBe('calm down');
      expect(response.headers.get('x-calm')).toBe('yes');
      expect(response.headers.get('x-ratelimit-remaining')).toBe('0');
      expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
    });

    it('refuses at the start a policy that is not known, and options that make no sense', async () => {
      const refused = async (options: unknown): Promise<string> =>
        start([slow('api', 1)], { options: options as Options }).then(
          () => 'started',
          (error: Error) => error.name,
        );
      expect(await refused({ policy: 'apy' })).toBe('UnknownPolicyError');
      expect(await refused({ policy: [] })).toBe('InvalidOptionError');
      expect(await refused({ policy: 'api', keys: byCaller })).toBe('InvalidOptionError');
      expect(await refused({ policy: 'api', cost: -1 })).toBe('InvalidOptionError');
      expect(await refused({ policy: 'api', headers: 'draft-1' })).toBe('InvalidOptionError');
    });

    it('warns once where one request is charged twice', async () => {
      const { get, warnings, limiter } = await start([slow('api', 9)], {
        options: [{ policy: 'api' }, { policy: 'api' }],
      });
      for (let i = 0; i < 2; i++) {
        const response = await get();
        expect(Object.keys(membersOf(response.headers.get('ratelimit') ?? ''))).toEqual(['api']);
      }
      expect(warnings.map(({ code }) => code)).toEqual(['HEADGATE_COUNTED_TWICE']);
      expect(limiter.stats()[0]).toMatchObject({ allowed: 4 });
    });

    it('warns of keys that are full IPv6 addresses', async () => {
      const { get, warnings } = await start([slow('api', 9)], {
        options: { policy: 'api', key: () => '2001:db8::1' },
      });
      for (let i = 0; i < 2; i++) await get();
      expect(warnings.map(({ code }) => code)).toEqual(['HEADGATE_FULL_IPV6_KEY']);
    });

    it.runIf(adaptor.hasAddresses)('never takes an address from X-Forwarded-For unasked, and says so', async () => {
      const { get, warnings } = await start([slow('api', 1)], { options: { policy: 'api' } });
      expect((await get({ 'x-forwarded-for': '192.0.2.1' })).status).toBe(200);
      expect((await get({ 'x-forwarded-for': '192.0.2.2' })).status).toBe(429);
      expect(warnings.map(({ code }) => code)).toEqual(['HEADGATE_FORWARDED_FOR_IGNORED']);
    });

    it.runIf(!adaptor.hasAddresses)('refuses to start without a key', async () => {
      await expect(start([slow('api', 1)], { options: { policy: 'api', key: undefined } as never })).rejects.toThrow(
        'Expected `key`, got none',
      );
    });
  });
}
