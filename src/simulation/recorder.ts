import type { PolicyCounters, PolicyGauges } from '../index.js';
import { type Policy, termsFor } from '../policy/policy.js';
import type { Milliseconds, Tokens } from '../units.js';
import { BucketWatch } from './bucket-watch.js';
import type { Share } from './fairness.js';
import type { Plan } from './parse-scenario.js';

/** What was counted of one group after the warm-up. */
export interface GroupTally {
  readonly name: string;
  readonly instances: number;
  /** Calls made for the first time, and denied for good. */
  calls: number;
  denied: number;
  /** Calls made, those that came back included. */
  requests: number;
  offered: Tokens;
  admitted: Tokens;
  waited: number;
  waitedMs: Milliseconds;
  longestWaitMs: Milliseconds;
}

/** Tokens in each span of the time series. */
export interface Series {
  readonly everyMs: Milliseconds;
  readonly offered: number[];
  readonly admitted: number[];
  /** What the ideal admitted. */
  readonly ideal: number[];
  readonly denied: number[];
  readonly storeCalls: number[];
}

/** Counts what happens in a run. */
export class Recorder {
  readonly groups: GroupTally[];
  readonly series: Series;
  /** Of the buckets that have a key of their own in the scenario: what each instance got. */
  readonly shares = new Map<BucketWatch, Map<string, Share>>();
  /** Lease calls, and messages that carried them, after the warm-up. */
  storeCalls = 0;
  roundTrips = 0;
  /** Most messages one instance has sent at one moment. */
  mostTripsATick = 0;
  /** Tokens that ended in a wallet, or with a crashed instance. */
  stranded: Tokens = 0;
  /** Lease calls of crashed instances that got no answer, or were refused. */
  failures = 0;
  refusals = 0;
  readonly #buckets = new Map<string, BucketWatch>();
  readonly #warmUpMs: Milliseconds;
  readonly #policies: ReadonlyMap<string, Policy>;

  constructor(plan: Plan) {
    this.#warmUpMs = plan.warmUpMs;
    this.#policies = new Map(plan.policies.map((policy) => [policy.name, policy]));
    this.groups = plan.groups.map(({ name, instances }) => ({
      name,
      instances,
      calls: 0,
      denied: 0,
      requests: 0,
      offered: 0,
      admitted: 0,
      waited: 0,
      waitedMs: 0,
      longestWaitMs: 0,
    }));
    const points = Math.ceil(plan.durationMs / plan.sampleMs);
    const zeros = () => new Array<number>(points).fill(0);
    this.series = {
      everyMs: plan.sampleMs,
      offered: zeros(),
      admitted: zeros(),
      ideal: zeros(),
      denied: zeros(),
      storeCalls: zeros(),
    };
  }

  /** Where what `instance` gets of a bucket is counted; the same for all its traffic. */
  share(policy: string, key: string, instance: string, weight: number): Share {
    const bucket = this.bucket(policy, key);
    const shares = this.#shares(bucket);
    let share = shares.get(instance);
    if (!share) {
      share = { weight, calls: 0, offered: 0, admitted: 0 };
      shares.set(instance, share);
    }
    return share;
  }

  get buckets(): Iterable<BucketWatch> {
    return this.#buckets.values();
  }

  bucket(policy: string, key: string): BucketWatch {
    const name = `${policy}:${key}`;
    let bucket = this.#buckets.get(name);
    if (!bucket) {
      const terms = this.#policies.get(policy);
      const ceiling = terms && termsFor(terms, key).ceiling;
      // What other algorithms let pass is another law: B + R·w says nothing of them.
      bucket = new BucketWatch(policy, key, ceiling?.algorithm === 'token-bucket' ? ceiling : undefined);
      this.#buckets.set(name, bucket);
    }
    return bucket;
  }

  /** A call has come; answers whether the ideal lets it pass. */
  offered(group: GroupTally, bucket: BucketWatch, share: Share | undefined, cost: Tokens, now: Milliseconds): boolean {
    const ideal = bucket.offer(cost, now);
    const { series } = this;
    const point = Math.floor(now / series.everyMs);
    series.offered[point] = (series.offered[point] ?? 0) + cost;
    if (ideal) series.ideal[point] = (series.ideal[point] ?? 0) + cost;
    if (now < this.#warmUpMs) return ideal;
    group.calls += 1;
    group.offered += cost;
    bucket.offered += cost;
    if (ideal) bucket.ideal += cost;
    if (share) {
      share.calls += 1;
      share.offered += cost;
    }
    return ideal;
  }

  /** A call has been made, for the first time or again. */
  requested(group: GroupTally, now: Milliseconds): void {
    if (now >= this.#warmUpMs) group.requests += 1;
  }

  admitted(
    group: GroupTally,
    bucket: BucketWatch,
    share: Share | undefined,
    cost: Tokens,
    cameAt: Milliseconds,
    now: Milliseconds,
  ): void {
    bucket.admit(cost, now);
    const { series } = this;
    const point = Math.floor(now / series.everyMs);
    series.admitted[point] = (series.admitted[point] ?? 0) + cost;
    if (now < this.#warmUpMs) return;
    group.admitted += cost;
    bucket.admitted += cost;
    if (share) share.admitted += cost;
    if (now === cameAt) return;
    group.waited += 1;
    group.waitedMs += now - cameAt;
    group.longestWaitMs = Math.max(group.longestWaitMs, now - cameAt);
  }

  /** A call has been denied for good; `ideal`: the ideal let it pass. */
  denied(group: GroupTally, bucket: BucketWatch, ideal: boolean, now: Milliseconds): void {
    const { series } = this;
    const point = Math.floor(now / series.everyMs);
    series.denied[point] = (series.denied[point] ?? 0) + 1;
    if (now < this.#warmUpMs) return;
    group.denied += 1;
    bucket.denied += 1;
    if (ideal) bucket.falselyDenied += 1;
  }

  /** An instance has sent lease calls: its `trip`th message at this moment. */
  asked(calls: number, trip: number, now: Milliseconds): void {
    this.mostTripsATick = Math.max(this.mostTripsATick, trip);
    const { series } = this;
    const point = Math.floor(now / series.everyMs);
    series.storeCalls[point] = (series.storeCalls[point] ?? 0) + calls;
    if (now < this.#warmUpMs) return;
    this.storeCalls += calls;
    this.roundTrips += 1;
  }

  /** A process is gone, which had counted this of one policy. */
  crashed(row: Readonly<PolicyCounters & PolicyGauges>): void {
    this.stranded += row.tokensHeld + row.tokensExpired;
    this.failures += row.leaseFailures;
    this.refusals += row.leaseRefusals;
  }

  #shares(bucket: BucketWatch): Map<string, Share> {
    const known = this.shares.get(bucket) ?? new Map<string, Share>();
    this.shares.set(bucket, known);
    return known;
  }
}
