import type { connect } from '@nats-io/transport-node';
import type { Cluster, Redis } from 'ioredis';
import type { Redis as Redis5 } from 'ioredis5';
import type { Redis as Valkey, Cluster as ValkeyCluster } from 'iovalkey';
import type { connect as connect2 } from 'nats';
import type { createClient, createCluster, createSentinel } from 'redis';
import type {
  createClient as createClient5,
  createCluster as createCluster5,
  createSentinel as createSentinel5,
} from 'redis5';
import { expectTypeOf, it } from 'vitest';
import type {
  AcquireOptions,
  Allowed,
  CeilingStore,
  createLimiter,
  Decision,
  DenialReason,
  Denied,
  KeyHandle,
  LimitedBy,
  Limiter,
  LimiterOptions,
  NatsConnection,
  NodeRedis,
  Observer,
  PolicyDocument,
  PolicyLimiter,
  PolicySource,
  RedisClient,
  Time,
} from '../../src/index.js';
import type { ManualTime, MemoryCeiling } from '../../src/testing.js';

// Checked by `npm run typecheck`; at run time these say nothing.

it('a decision tells its kinds apart by `allowed`', () => {
  const use = (decision: Decision): void => {
    expectTypeOf(decision.remaining).toEqualTypeOf<number>();
    expectTypeOf(decision.policyVersion).toEqualTypeOf<number>();
    expectTypeOf(decision.degraded).toEqualTypeOf<boolean>();
    if (decision.allowed) {
      expectTypeOf(decision).toEqualTypeOf<Allowed>();
      // @ts-expect-error an allowed call has no reason
      decision.reason;
      // @ts-expect-error nor a time to come back at
      decision.retryAfterMs;
    } else {
      expectTypeOf(decision).toEqualTypeOf<Denied>();
      expectTypeOf(decision.reason).toEqualTypeOf<DenialReason>();
      expectTypeOf(decision.limitedBy).toEqualTypeOf<LimitedBy>();
      expectTypeOf(decision.retryAfterMs).toEqualTypeOf<number | undefined>();
    }
    // @ts-expect-error a decision is not changed by its reader
    decision.remaining = 3;
  };
  expectTypeOf(use).toBeFunction();
});

it('the verbs are as documented', () => {
  expectTypeOf<PolicyLimiter['tryAcquire']>().toEqualTypeOf<(key: string, cost?: number) => boolean>();
  expectTypeOf<PolicyLimiter['decide']>().toEqualTypeOf<(key: string, cost?: number) => Decision>();
  expectTypeOf<PolicyLimiter['acquire']>().toEqualTypeOf<
    (key: string, options?: AcquireOptions) => Promise<Decision>
  >();
  expectTypeOf<PolicyLimiter['key']>().toEqualTypeOf<(key: string) => KeyHandle>();
  expectTypeOf<KeyHandle['tryAcquire']>().toEqualTypeOf<(cost?: number) => boolean>();
  expectTypeOf<KeyHandle['decide']>().toEqualTypeOf<(cost?: number) => Decision>();
  expectTypeOf<KeyHandle['acquire']>().toEqualTypeOf<(options?: AcquireOptions) => Promise<Decision>>();
  expectTypeOf<Limiter['close']>().toEqualTypeOf<() => Promise<void>>();
  expectTypeOf<Limiter>().toExtend<{ [Symbol.asyncDispose](): Promise<void> }>();
  expectTypeOf<ReturnType<typeof createLimiter>>().toEqualTypeOf<Promise<Limiter>>();
  expectTypeOf<AcquireOptions>().toExtend<{ cost?: number; maxWaitMs?: number; signal?: AbortSignal }>();
});

it('a client that the user has is taken as it is, of either generation', () => {
  expectTypeOf<Redis>().toExtend<RedisClient>();
  expectTypeOf<Redis5>().toExtend<RedisClient>();
  expectTypeOf<Cluster>().toExtend<RedisClient>();
  expectTypeOf<Valkey>().toExtend<RedisClient>();
  expectTypeOf<ValkeyCluster>().toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof createClient>>().toExtend<NodeRedis>();
  expectTypeOf<ReturnType<typeof createCluster>>().toExtend<NodeRedis>();
  expectTypeOf<ReturnType<typeof createSentinel>>().toExtend<NodeRedis>();
  expectTypeOf<ReturnType<typeof createClient5>>().toExtend<NodeRedis>();
  expectTypeOf<ReturnType<typeof createCluster5>>().toExtend<NodeRedis>();
  expectTypeOf<ReturnType<typeof createSentinel5>>().toExtend<NodeRedis>();
  expectTypeOf<Awaited<ReturnType<typeof connect>>>().toExtend<NatsConnection>();
  expectTypeOf<Awaited<ReturnType<typeof connect2>>>().toExtend<NatsConnection>();
  expectTypeOf<{ redis: Redis; nats: Awaited<ReturnType<typeof connect>> }>().toExtend<
    LimiterOptions<RedisClient, NatsConnection>
  >();
});

it('options are checked where they are written', () => {
  type Options = Parameters<typeof createLimiter>[0];
  const good: Options = {
    policies: [{ name: 'api', local: { rate: 200, burst: 400 }, ceiling: { rate: 1_000, burst: 2_000, per: '1m' } }],
    redis: 'redis://127.0.0.1:6379',
    nats: 'nats://127.0.0.1:4222',
    instanceId: 'web-7',
  };
  // @ts-expect-error no such option
  const unknown: Options = { polices: [] };
  // @ts-expect-error no such unit
  const period: PolicyDocument = { name: 'api', local: { rate: 1, burst: 1, per: '10 minutes' } };
  // @ts-expect-error no such mode
  const mode: PolicyDocument = { name: 'api', local: { rate: 1, burst: 1 }, outage: { mode: 'open' } };
  expectTypeOf([good, unknown, period, mode]).toBeArray();
});

it('ports can be implemented, and the testing kit fits them', () => {
  expectTypeOf<MemoryCeiling>().toExtend<CeilingStore>();
  expectTypeOf<ManualTime>().toExtend<Time>();
  expectTypeOf<NonNullable<LimiterOptions['ceiling']>>().toEqualTypeOf<CeilingStore>();
  expectTypeOf<NonNullable<LimiterOptions['policySource']>>().toEqualTypeOf<PolicySource>();
  expectTypeOf<NonNullable<LimiterOptions['observer']>>().toEqualTypeOf<Observer>();
});
