import {
  type ChannelCredentials,
  type Client,
  credentials,
  Metadata,
  makeGenericClientConstructor,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { afterEach, describe, expect, it } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import type { LimiterOptions, PolicyDocument } from '../../src/index.js';
import { type GrpcRateLimitOptions, rateLimit, type SetupWarning } from '../../src/middleware/grpc.js';
import { systemTime } from '../../src/time.js';
import { peek } from '../../src/verb/one-limit.js';
import { eventually } from '../support/eventually.js';
import { RemoteCeiling } from '../support/remote-ceiling.js';

const toClose: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close();
});

const asText = { serialize: (text: string) => Buffer.from(text), deserialize: (bytes: Buffer) => bytes.toString() };
const ECHO = {
  echo: {
    path: '/test.Echo/Echo',
    requestStream: false,
    responseStream: false,
    requestSerialize: asText.serialize,
    requestDeserialize: asText.deserialize,
    responseSerialize: asText.serialize,
    responseDeserialize: asText.deserialize,
  },
} satisfies ServiceDefinition;
type EchoClient = Client & {
  echo(
    text: string,
    metadata: Metadata,
    answered: (error: ServiceError | null, text?: string) => void,
  ): { cancel(): void };
};

/** google.rpc as an independent implementation of protobuf reads it. */
const { root } = protobuf.parse(`
  syntax = "proto3"; package google.rpc;
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message RetryInfo { Duration retry_delay = 1; }
  message Violation { string subject = 1; string description = 2; }
  message QuotaFailure { repeated Violation violations = 1; }`);
const read = (type: string, bytes: Uint8Array) => {
  const message = root.lookupType(`google.rpc.${type}`);
  return message.toObject(message.decode(bytes), { longs: Number });
};

async function serve(
  policies: readonly PolicyDocument[],
  options: GrpcRateLimitOptions,
  more: Partial<LimiterOptions> = {},
) {
  const limiter = await createLimiter({ policies, telemetry: false, ...more } as LimiterOptions<never, never>);
  toClose.push(() => limiter.close());
  const seen = { handled: 0, warnings: [] as SetupWarning[], errors: [] as Error[] };
  const server = new Server({
    interceptors: [
      rateLimit(limiter, {
        onWarning: (warning) => seen.warnings.push(warning),
        onError: (error) => seen.errors.push(error),
        ...options,
      }),
    ],
  });
  server.addService(ECHO, {
    echo: (call: { request: string }, answer: (error: null, text: string) => void) => {
      seen.handled += 1;
      answer(null, call.request);
    },
  });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const EchoClient = makeGenericClientConstructor(ECHO, 'Echo') as unknown as new (
    address: string,
    security: ChannelCredentials,
  ) => EchoClient;
  const client = new EchoClient(`127.0.0.1:${port}`, credentials.createInsecure());
  toClose.push(
    () => server.forceShutdown(),
    () => client.close(),
  );
  const call = (fields: Record<string, string> = {}) => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(fields)) metadata.set(name, value);
    let cancel = (): void => {};
    const answer = new Promise<string | ServiceError>((resolve) => {
      const begun = client.echo('hello', metadata, (error, text) => resolve(error ?? (text as string)));
      cancel = () => begun.cancel();
    });
    return { answer, cancel: () => cancel() };
  };
  const failed = async (fields: Record<string, string> = {}) => (await call(fields).answer) as ServiceError;
  return { limiter, seen, call, failed };
}

const slow = (name: string, burst: number): PolicyDocument => ({ name, local: { rate: 1, burst, per: '1h' } });

describe('gRPC', () => {
  it('lets a call pass, and denies one as RESOURCE_EXHAUSTED with all that a client needs to come back', async () => {
    const { call, failed, seen } = await serve([slow('api', 1)], { policy: 'api' });
    expect(await call().answer).toBe('hello');
    const error = await failed();
    expect(error.code).toBe(status.RESOURCE_EXHAUSTED);
    expect(error.details).toContain('The quota "api" is used up.');
    const pushback = Number(error.metadata.get('grpc-retry-pushback-ms')[0]);
    expect(pushback).toBeGreaterThan(3_590_000);
    expect(pushback).toBeLessThanOrEqual(3_600_000);
    const details = read('Status', error.metadata.get('grpc-status-details-bin')[0] as Buffer);
    expect(details).toMatchObject({ code: status.RESOURCE_EXHAUSTED, message: error.details });
    const [retry, quota] = details['details'] as { typeUrl: string; value: Uint8Array }[];
    expect(retry?.typeUrl).toBe('type.googleapis.com/google.rpc.RetryInfo');
    const { seconds, nanos = 0 } = read('RetryInfo', retry?.value as Uint8Array)['retryDelay'];
    expect(seconds * 1_000 + nanos / 1e6).toBe(pushback);
    expect(read('QuotaFailure', quota?.value as Uint8Array)).toMatchObject({ violations: [{ subject: 'api' }] });
    expect(seen).toMatchObject({ handled: 1, errors: [] });
  });

  it('limits by what is known when a call begins: its metadata and method', async () => {
    const { call, failed } = await serve([slow('api', 3)], {
      policy: 'api',
      key: ({ metadata }) => String(metadata.get('x-caller')[0]),
      cost: ({ method }) => (method === '/test.Echo/Echo' ? 2 : 1),
      skip: ({ metadata }) => metadata.get('x-health').length > 0,
    });
    expect(await call({ 'x-caller': 'alice' }).answer).toBe('hello');
    expect((await failed({ 'x-caller': 'alice' })).code).toBe(status.RESOURCE_EXHAUSTED);
    expect(await call({ 'x-caller': 'bob' }).answer).toBe('hello');
    expect(await call({ 'x-caller': 'alice', 'x-health': '1' }).answer).toBe('hello');
  });

  it('is UNAVAILABLE while the store is down and the fleet denies', async () => {
    const ceiling = new RemoteCeiling(systemTime);
    ceiling.ready = false;
    const { failed } = await serve(
      [{ name: 'api', ceiling: { rate: 10, burst: 10 } }],
      { policy: 'api' },
      { ceiling, onTrouble: () => {} },
    );
    const error = await failed();
    expect(error.code).toBe(status.UNAVAILABLE);
    expect(Number(error.metadata.get('grpc-retry-pushback-ms')[0])).toBeGreaterThan(0);
  });

  it('tells not to retry what the policy denies altogether', async () => {
    const { failed } = await serve([{ ...slow('api', 1), mode: 'deny' }], { policy: 'api' });
    const error = await failed();
    expect(error.code).toBe(status.PERMISSION_DENIED);
    expect(error.metadata.get('grpc-retry-pushback-ms')).toEqual(['-1']);
    const details = read('Status', error.metadata.get('grpc-status-details-bin')[0] as Buffer);
    expect((details['details'] as { typeUrl: string }[]).map(({ typeUrl }) => typeUrl)).toEqual([
      'type.googleapis.com/google.rpc.QuotaFailure',
    ]);
  });

  it('does not show the first call of a key a denial while its lease is fetched', async () => {
    const { call } = await serve(
      [{ name: 'api', ceiling: { rate: 10, burst: 10 } }],
      { policy: 'api', key: ({ metadata }) => String(metadata.get('x-caller')[0]) },
      { ceiling: new RemoteCeiling(systemTime, 10), newStore: 'full' },
    );
    // A key of its own for each attempt, so that each is cold: a busy machine may miss the deadline of one call.
    let attempt = 0;
    await eventually(
      async () => (await call({ 'x-caller': `cold ${++attempt}` }).answer) === 'hello',
      'a cold key passes',
    );
  });

  it('charges what a call has really cost once it has ended', async () => {
    const { call, limiter } = await serve([slow('api', 5)], {
      policy: 'api',
      cost: 3,
      key: () => 'one',
      settle: ({ status: code, finished }) => (code === status.OK && finished ? 1 : 3),
    });
    await call().answer;
    await eventually(() => peek(limiter.policy('api'), 'one').remaining === 4, 'two have come back');
  });

  it('leaves nobody waiting whose client has cancelled', async () => {
    const { call, limiter, seen } = await serve([{ name: 'api', local: { rate: 1, burst: 1, per: '10m' } }], {
      policy: 'api',
      maxWaitMs: 3_600_000,
    });
    await call().answer;
    const waiting = call();
    await eventually(() => limiter.stats()[0]?.waiting === 1, 'the call waits');
    waiting.cancel();
    expect(await waiting.answer).toMatchObject({ code: status.CANCELLED });
    await eventually(() => limiter.stats()[0]?.waiting === 0, 'nobody waits');
    expect(seen).toMatchObject({ handled: 1, errors: [] });
  });

  it('ends a call as INTERNAL whose key throws, and tells', async () => {
    const { failed, seen } = await serve([slow('api', 1)], {
      policy: 'api',
      key: () => {
        throw new Error('broken key');
      },
    });
    const error = await failed();
    expect(error.code).toBe(status.INTERNAL);
    expect(error.details).not.toContain('broken');
    expect(seen).toMatchObject({ handled: 0, errors: [{ message: 'broken key' }] });
  });

  it("takes the peer's address, or what trusted proxies have reported", async () => {
    const alone = await serve([slow('api', 1)], { policy: 'api' });
    expect(await alone.call({ 'x-forwarded-for': '192.0.2.1' }).answer).toBe('hello');
    expect((await alone.failed({ 'x-forwarded-for': '192.0.2.2' })).code).toBe(status.RESOURCE_EXHAUSTED);
    expect(alone.seen.warnings.map(({ code }) => code)).toEqual(['HEADGATE_FORWARDED_FOR_IGNORED']);

    const behind = await serve([slow('api', 1)], { policy: 'api', trustedProxies: ['loopback'] });
    expect(await behind.call({ 'x-forwarded-for': '192.0.2.1' }).answer).toBe('hello');
    expect(await behind.call({ 'x-forwarded-for': '192.0.2.2' }).answer).toBe('hello');
    expect((await behind.failed({ 'x-forwarded-for': '192.0.2.2' })).code).toBe(status.RESOURCE_EXHAUSTED);
  });

  it('refuses at the start a policy that is not known', async () => {
    await expect(serve([slow('api', 1)], { policy: 'apy' })).rejects.toThrow('apy');
  });
});
