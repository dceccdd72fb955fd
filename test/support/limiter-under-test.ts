import { expect, onTestFinished } from 'vitest';
import { createLimiter } from '../../src/create-limiter.js';
import type { Allowed, Decision, Denied } from '../../src/limiter/decision.js';
import type { Limiter } from '../../src/limiter/limiter.js';
import type { LimiterOptions } from '../../src/limiter/options.js';
import type { PolicyLimiter } from '../../src/limiter/policy-limiter.js';
import type { PolicyDocument } from '../../src/policy/policy.js';
import { ManualTime } from '../../src/testing.js';
import { RemoteCeiling } from './remote-ceiling.js';

export interface UnderTest {
  readonly time: ManualTime;
  readonly limiter: Limiter;
  /** The limiter of the first policy. */
  readonly api: PolicyLimiter;
  /** What was reported as trouble. */
  readonly troubles: Error[];
}

/** A limiter on a clock that the test moves, its ceiling in this process. Closed when the test has ended. */
export async function limiterOf(
  policy: Omit<PolicyDocument, 'name'> & { name?: string },
  options: Partial<LimiterOptions> & { time?: ManualTime } = {},
): Promise<UnderTest> {
  const time = options.time ?? new ManualTime(1_000);
  const troubles: Error[] = [];
  const name = policy.name ?? 'api';
  const limiter = await createLimiter({
    policies: [{ ...policy, name }],
    telemetry: false,
    random: () => 0.5,
    onTrouble: (error) => troubles.push(error),
    ...options,
    time,
  } as LimiterOptions<never, never>);
  onTestFinished(() => closed(limiter, time));
  return { time, limiter, api: limiter.policy(name), troubles };
}

/** The same with a ceiling that is a round trip of twice 5 ms away. */
export async function remoteLimiterOf(
  policy: Omit<PolicyDocument, 'name'> & { name?: string },
  options: Partial<LimiterOptions> & { time?: ManualTime; remote?: RemoteCeiling } = {},
): Promise<UnderTest & { remote: RemoteCeiling }> {
  const { remote: given, ...rest } = options;
  const time = options.time ?? new ManualTime(1_000);
  const remote = given ?? new RemoteCeiling(time);
  return { ...(await limiterOf(policy, { ...rest, time, ceiling: remote })), remote };
}

/** Closes a limiter on manual time, moving it on as long as that takes. */
export async function closed(limiter: Limiter, time: ManualTime): Promise<void> {
  const closing = limiter.close();
  for (let i = 0; i < 3; i++) await time.advance(150);
  await closing;
}

/** What a promise has come to by now. */
export async function soFar<T>(promise: Promise<T>): Promise<T | 'pending'> {
  let outcome: T | 'pending' = 'pending';
  promise.then((value) => {
    outcome = value;
  });
  for (let i = 0; i < 12; i++) await Promise.resolve();
  return outcome;
}

export function allowed(decision: Decision | 'pending'): Allowed {
  expect(decision).toMatchObject({ allowed: true });
  return decision as Allowed;
}

export function denied(decision: Decision | 'pending'): Denied {
  expect(decision).toMatchObject({ allowed: false });
  return decision as Denied;
}
