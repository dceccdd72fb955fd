import type { PolicyDocument } from '../policy/policy.js';
import type { Period } from '../units.js';

/**
 * A fleet, what is asked of it, and what befalls it: plain data, as it stands in a JSON file. Spans and moments are
 * {@link Period}s: a number of milliseconds, or a text such as `'500ms'`, `'30s'`, `'5m'`. Moments count from the start.
 */
export interface Scenario {
  /** For people. */
  name?: string;
  /** Everything random follows from it: the same scenario with the same seed is the same run. Whole; default 1. */
  seed?: number;
  /** How long the fleet runs. */
  duration: Period;
  /** What of that is left out of shares, utilisation and counts; windows are watched from the start. Default 0. */
  warmUp?: Period;
  /** The policies, as given to `createLimiter`. */
  policies: PolicyDocument[];
  /** The instances, group by group. */
  fleet: GroupDocument[];
  network?: NetworkDocument;
  /** What a store without data means; see `newStore` of `createLimiter`. Default `'full'`. */
  newStore?: 'full' | 'empty';
  /** `callDeadlineMs` of `createLimiter`. Default 100. */
  callDeadlineMs?: number;
  /** What happens on the way. Default: nothing. */
  events?: EventDocument[];
  /** Width of a point of the report's time series. Default `'100ms'`. */
  sample?: Period;
}

/** Instances that are alike. */
export interface GroupDocument {
  /** Default `'group 1'`, by place. */
  name?: string;
  /** How many; 1 to 100,000. */
  instances: number;
  /** `weight` of `createLimiter`. Default 1. */
  weight?: number;
  /** Pace of their clocks: 0.005 runs half a percent fast. −0.01 to 0.01; default 0. */
  drift?: number;
  /** What is asked of each of them. */
  traffic: TrafficDocument | TrafficDocument[];
}

/** Calls that one instance gets. What they ask for is per instance, not per group. */
export interface TrafficDocument {
  /**
   * `poisson` (default): calls that know nothing of each other. `steady`: evenly spaced. `bursts`: `size` calls at once,
   * at random moments, `every` apart on average. `cron`: `size` calls at each multiple of `every`, at all instances alike.
   */
  shape?: 'poisson' | 'steady' | 'bursts' | 'cron';
  /** Calls a second, for `poisson` and `steady`. */
  rate?: number;
  /** Calls at once, for `bursts` and `cron`. */
  size?: number;
  /** Time between them, for `bursts` and `cron`. */
  every?: Period;
  /** For `cron`: calls come up to this much late, at random. Default 0. */
  spread?: Period;
  /** When it begins and ends. Default: the whole run. */
  from?: Period;
  until?: Period;
  /** Whose it is: one of `policies`. Default: the first. */
  policy?: string;
  /** One key, or many of which the first ones are asked for more often (Zipf; `skew` 0: all alike). Default `'all'`. */
  key?: string | { count: number; skew?: number };
  /** Tokens a call. Default 1. */
  cost?: number;
  /** Which of the limiter's verbs is called. Default `'acquire'`. */
  verb?: 'acquire' | 'tryAcquire';
  /** `maxWaitMs` of `acquire`. */
  maxWaitMs?: number;
  /** How often a denied call comes back after its `retryAfterMs`, if there is one. Default 0. */
  retries?: number;
  /**
   * What it is told then: `exact` (default), to the millisecond; `seconds`, whole ones, as HTTP has them; `spread`: the same,
   * one slot after the other, as by `spreadMs` of the adaptors for HTTP.
   */
  retryAfter?: 'exact' | 'seconds' | 'spread';
}

/** Between instances and the store, and from the policy source to them. */
export interface NetworkDocument {
  /** To the store and back. Default 1. */
  roundTripMs?: number;
  /** Each way takes up to this much longer. Default 0. */
  jitterMs?: number;
  /** Chance that a message is lost, or arrives twice. 0 to 1; default 0. */
  loss?: number;
  duplication?: number;
  /** How long a published policy takes to an instance, give or take a half. Default 20. */
  policyDelayMs?: number;
}

/** Which instances: all of them (default), that many taken at random, or those of these groups. */
export type Selection = 'all' | number | { groups: string[] };

/** Something that happens at a moment. */
export type EventDocument = { at: Period } & (
  | { kind: 'crash'; instances?: Selection; restartAfter?: Period }
  | { kind: 'stall'; instances?: Selection; for: Period }
  | { kind: 'partition'; instances?: Selection; from?: 'store' | 'policies' | 'both'; for: Period }
  | { kind: 'slow'; roundTripMs: number; for: Period }
  | { kind: 'store-down'; for: Period }
  | { kind: 'store-loss' }
  | { kind: 'stale-failover'; lag: Period }
  | { kind: 'evict'; policy?: string; key?: string }
  | { kind: 'clock-step'; by: number }
  | { kind: 'publish'; policy: PolicyDocument }
);
