import type { Milliseconds, PolicyDocument } from '../../../src/index.js';

/** Where an instance finds its ceilings. */
export type RedisAddress =
  | { readonly kind: 'server'; readonly port: number }
  | {
      readonly kind: 'sentinel';
      readonly ports: readonly number[];
      readonly name: string;
      /** Other ports that the sentinels' answers stand for, as behind an address translation; they are asked at `ports` only. */
      readonly translated?: Readonly<Record<number, number>>;
    }
  | { readonly kind: 'cluster'; readonly ports: readonly number[] };

/** What its callers do: half of them `tryAcquire`, half `acquire` without `maxWaitMs`. */
export interface Load {
  /** Attempts a second of the whole process, spread over its limiters and the keys. */
  readonly perSecond: number;
  readonly keys: readonly string[];
}

export interface InstanceOptions {
  readonly name: string;
  readonly redis: RedisAddress;
  readonly natsPort?: number;
  /** As given in code. All callers use the first. */
  readonly policies: readonly PolicyDocument[];
  /** Limiters in this process, each an instance of the fleet with connections of its own. */
  readonly limiters: number;
  readonly group: string;
  /** Where each admission goes at once, so that SIGKILL loses none. */
  readonly admissionsFile: string;
  readonly load: Load;
}

/** What a test tells an instance. */
export type Order =
  | { readonly order: 'start'; readonly options: InstanceOptions }
  | { readonly order: 'load'; readonly load: Load }
  | { readonly order: 'block'; readonly forMs: Milliseconds }
  | { readonly order: 'publish'; readonly document: PolicyDocument }
  | { readonly order: 'report' }
  | { readonly order: 'close' };

/** The answer: what was asked for, or why not. */
export type Answer =
  | { readonly number: number; readonly report: InstanceReport }
  | { readonly number: number; readonly version: number }
  | { readonly number: number; readonly error: string };

/** When an instance lost (`degraded`) or regained its store; monotonic ms. */
export interface StoreChange {
  readonly at: Milliseconds;
  readonly degraded: boolean;
}

export interface InstanceReport {
  readonly allowed: number;
  readonly denied: Readonly<Record<string, number>>;
  /** Longest wait of an `acquire`, without the time in which this process did not run. */
  readonly longestWaitMs: Milliseconds;
  readonly unhandledRejections: readonly string[];
  /** Messages that went to `onTrouble`, each once. */
  readonly troubles: readonly string[];
  readonly storeChanges: readonly StoreChange[];
  readonly policyChanges: readonly { readonly at: Milliseconds; readonly version: number }[];
  readonly leaseCalls: number;
  readonly leaseFailures: number;
  readonly leaseRefusals: number;
  /** Admitted without a lease, by the outage mode. */
  readonly tokensUnleased: number;
  /** The span of time that holds every one of these; absent where there was none. */
  readonly unleased?: { readonly from: Milliseconds; readonly until: Milliseconds };
  /** What still keeps the process alive after `close`, besides the channel to the test. */
  readonly handles: readonly string[];
}

/** Doubles in the admissions file: time, cost, index of the key. */
export const ADMISSION_FIELDS = 3;
