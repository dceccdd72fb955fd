import { setTimeout as sleep } from 'node:timers/promises';
import { createLimiter, type Limiter, type Milliseconds, type PolicyDocument } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import type { Fleet } from './fleet.js';
import { monotonicNow } from './instance/clock.js';
import type { WindowRule } from './window-oracle.js';

/** Of the policy that a fleet began with: what its rate and burst are raised to, and then cut to. */
const RAISED = 1.5;
export const TIGHTENED = 0.5;
/** From the beginning of a fault to the first policy, and from that to the second: both come while it lasts. */
const FIRST_AFTER_MS: Milliseconds = 50;
const SECOND_AFTER_MS: Milliseconds = 350;
/** NATS itself may be what is broken. */
const PUBLISHED_WITHIN_MS: Milliseconds = 20_000;

/** Two policies published in the middle of whatever else happens to a fleet: its terms raised, then tightened. */
export class ChangingTerms {
  readonly #fleet: Fleet;
  readonly #policy: PolicyDocument;
  readonly #published: Promise<{ raisedAt: Milliseconds; version: number }>;

  /** An operator's limiter publishes, not one of the fleet: these are killed and stopped. */
  static async begin(fleet: Fleet, policy: PolicyDocument, natsPort: number): Promise<ChangingTerms> {
    const operator = await createLimiter({
      nats: `nats://127.0.0.1:${natsPort}`,
      policies: [policy],
      group: 'operator',
      telemetry: false,
      onTrouble: () => {},
    });
    return new ChangingTerms(fleet, policy, operator);
  }

  private constructor(fleet: Fleet, policy: PolicyDocument, operator: Limiter) {
    this.#fleet = fleet;
    this.#policy = policy;
    this.#published = this.#publishBoth(operator);
    // Who asks hears of it; a scenario that has failed by then never does.
    this.#published.catch(() => {});
  }

  /**
   * Waits until all instances have the last terms, and answers how a rule about terms that stay is one about these. A
   * raised rate counts from before it was published: until then nobody can have had it. A cut one counts only once what
   * was lent under those before it has ended everywhere, `leaseEndMs` after all know it. What a fault may cost grows with
   * the terms.
   */
  async settled(leaseEndMs: Milliseconds): Promise<(rule: WindowRule) => WindowRule> {
    const { raisedAt, version } = await this.#published;
    await this.#fleet.each((report) => report.policyChanges.at(-1)?.version === version, 'all know the last policy');
    const changes = [
      { from: raisedAt, factor: RAISED },
      { from: monotonicNow() + leaseEndMs, factor: TIGHTENED },
    ];
    return (rule) => ({ ...rule, changes, extra: (rule.extra ?? 0) * RAISED });
  }

  async #publishBoth(operator: Limiter): Promise<{ raisedAt: Milliseconds; version: number }> {
    try {
      await sleep(FIRST_AFTER_MS);
      const raisedAt = monotonicNow();
      await this.#publish(operator, RAISED);
      await sleep(SECOND_AFTER_MS);
      return { raisedAt, version: await this.#publish(operator, TIGHTENED) };
    } finally {
      await operator.close();
    }
  }

  async #publish(operator: Limiter, factor: number): Promise<number> {
    const ceiling = { rate: this.#fleet.rate * factor, burst: this.#fleet.burst * factor };
    const publish = async (): Promise<number> =>
      (await operator.policies.publish({ ...this.#policy, ceiling })).version;
    return eventually(publish, 'the policy could be published', { deadlineMs: PUBLISHED_WITHIN_MS, everyMs: 50 });
  }
}
