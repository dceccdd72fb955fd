import type { CeilingStore } from './ceiling/ceiling-store.js';
import type { GivenRedisClient } from './ceiling/node-redis.js';
import { Limiter, type SeatDeskClass } from './limiter/limiter.js';
import { loadCode } from './limiter/on-demand.js';
import { checkLimiterOptions, type LimiterOptions } from './limiter/options.js';
import type { NatsConnection } from './policy/nats-client.js';
import { parsePolicies } from './policy/parse-policy.js';
import { everyTerms, type Policy } from './policy/policy.js';
import type { PolicyListener, PolicySource } from './policy/policy-source.js';
import { PolicyRegistry } from './policy/registry.js';
import { staticPolicySource } from './policy/static-source.js';
import { composeObserver } from './telemetry/compose-observer.js';
import type { Observer } from './telemetry/observer.js';
import { type Random, randomId, systemTime } from './time.js';
import { VERSION } from './version.js';

/**
 * Makes a limiter: one for each process of the fleet.
 *
 * Resolves once the policies known at this moment are in force. A Redis or NATS that can't be reached does not make it
 * fail: the limiter starts degraded or with the policies given in code, says so, and goes on trying.
 *
 * @throws {InvalidOptionError} {@link InvalidPolicyError} {@link MissingPeerError}
 */
export async function createLimiter(options: LimiterOptions<GivenRedisClient, NatsConnection>): Promise<Limiter> {
  checkLimiterOptions(options);
  const policies = parsePolicies(options.policies ?? []);
  const time = options.time ?? systemTime;
  const random = options.random ?? Math.random;
  const instanceId = options.instanceId ?? randomId(Math.random);
  const digest = options.keys && (await import('./key/key-digest.js')).keyDigest(options.keys.hash);
  const observer = await composeObserver({
    instanceId,
    version: VERSION,
    time: options.time,
    observer: options.observer,
    telemetry: options.telemetry,
    onTrouble: options.onTrouble,
  });
  const store = await ceilingStore(options, observer);
  const source = await policySource(options, policies).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  // Before they come into force; those of the source below.
  for (const policy of policies) await loadCode(policy);
  const registry = new PolicyRegistry({ policies, time, observer });
  const limiter = new Limiter({
    instanceId,
    // Never an option, and never the same twice: a restarted instance must not be taken for its former self (rule 3).
    holder: randomId(chanceOfIdentity(options)),
    group: options.group ?? 'default',
    weight: options.weight ?? 1,
    deadlineMs: options.callDeadlineMs ?? 100,
    maxKeys: options.maxKeys ?? 100_000,
    seatDesk: await seatDesk(policies),
    Marks: isOwnStore(options) ? undefined : (await import('./mark/mark-desk.js')).MarkDesk,
    blocksEveryMs: options.blocksEveryMs ?? 1_000,
    digest,
    Fleet: store.leaseNow ? undefined : (await import('./lease/fleet.js')).Fleet,
    store,
    source,
    registry,
    observer,
    time,
    random,
  });
  const listener: PolicyListener = {
    update: (update) => registry.apply(update),
    trouble: (error) => observer.trouble(error),
  };
  try {
    await source.watch(listener);
    for (const policy of registry.policies()) await loadCode(policy);
    await limiter.begin();
  } catch (error) {
    await limiter.close();
    throw error;
  }
  return limiter;
}

async function ceilingStore(options: LimiterOptions<GivenRedisClient>, observer: Observer): Promise<CeilingStore> {
  const { redis, ceiling, newStore, keyPrefix } = options;
  if (ceiling) return ceiling;
  // Loaded only where asked for: who keeps ceilings in Redis does not pay for the ledger here, nor the other way round.
  if (redis === undefined) {
    const { MemoryCeiling, storeClock } = await import('./ceiling/memory-ceiling.js');
    const clock = storeClock(options.time ?? systemTime);
    return new MemoryCeiling({
      clock,
      newStore: newStore ?? 'full',
      random: chanceOfIdentity(options),
    });
  }
  const { redisCeiling } = await import('./ceiling/redis-ceiling.js');
  return redisCeiling(redis, {
    onTrouble: (error) => observer.trouble(error),
    ...(newStore && { newStore }),
    ...(keyPrefix && { prefix: keyPrefix }),
  });
}

/**
 * Chance for identities that a ceiling store knows. Of a whole fleet only `crypto`, the default, makes sure that there
 * are no two alike; where the store is this limiter's own it would do no good, and loading it takes milliseconds.
 */
function chanceOfIdentity(options: LimiterOptions<GivenRedisClient>): Random | undefined {
  const { time, random } = options;
  if (time && random) return random;
  return isOwnStore(options) ? Math.random : undefined;
}

/** Whether ceilings are kept in this process, for this limiter alone. */
function isOwnStore({ redis, ceiling }: LimiterOptions<GivenRedisClient>): boolean {
  return redis === undefined && ceiling === undefined;
}

/** What counts those in flight, where a policy given in code limits them; else it is loaded by the first who enters. */
async function seatDesk(policies: readonly Policy[]): Promise<SeatDeskClass | undefined> {
  const counts = policies.some((policy) => everyTerms(policy).some(({ concurrency }) => concurrency));
  return counts ? (await import('./seat/seat-desk.js')).SeatDesk : undefined;
}

async function policySource(
  options: LimiterOptions<GivenRedisClient, NatsConnection>,
  policies: readonly Policy[],
): Promise<PolicySource> {
  if (options.policySource) return options.policySource;
  if (options.nats === undefined) return staticPolicySource(policies);
  const { NatsPolicies } = await import('./policy/nats-policies.js');
  return new NatsPolicies({ nats: options.nats });
}
