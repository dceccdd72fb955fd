import type { Milliseconds, PolicyDocument } from '../index.js';

/** What every instance of a demo is told when it is forked. */
export interface InstanceSettings {
  readonly instance: number;
  /** Where it writes its admissions. */
  readonly directory: string;
  readonly policies: readonly PolicyDocument[];
  readonly redis: string | undefined;
  readonly nats: string | undefined;
  readonly callDeadlineMs?: Milliseconds;
}

/** What an instance that offers load is told besides. */
export interface LoadSettings extends InstanceSettings {
  readonly task: 'load';
  /** The policy that is offered load. */
  readonly policy: string;
  readonly key: string;
  /** Requests a second. */
  readonly demand: number;
}

/** What an instance that replays requests is told besides. */
export interface ReplaySettings extends InstanceSettings {
  readonly task: 'replay';
  readonly clientPolicy: string;
  readonly globalPolicy: string;
  readonly globalKey: string;
  /** How many times faster than the host's clock the limiter's runs. */
  readonly speed: number;
}

/** A request to replay: when, on the host's clock, and whose. */
export type DueRequest = readonly [at: Milliseconds, client: string];

/** What became of it: as `ReplayedRequest`, in a row, with null for undefined. */
export type DoneRequest = readonly [
  client: string,
  arrivedAt: Milliseconds,
  clientAt: Milliseconds | null,
  globalAt: Milliseconds | null,
  reason: string,
];

/** From an instance to the primary. `demo` tells these from the messages of the SDK on the same channel. */
export type FromInstance =
  | { readonly demo: 'ready' }
  | { readonly demo: 'progress'; readonly offered: number }
  /** A round trip begun under a newer policy has ended: the store has met its terms. */
  | { readonly demo: 'fenced'; readonly version: number; readonly at: Milliseconds }
  | { readonly demo: 'trouble'; readonly message: string }
  | { readonly demo: 'replayed'; readonly requests: readonly DoneRequest[] }
  | ({ readonly demo: 'done' } & InstanceReport);

/** What an instance has to say at its end. */
export interface InstanceReport {
  readonly decisions: number;
  readonly leaseCalls: number;
  readonly leaseFailures: number;
  /** Requests that were asked anew because the ceiling had not decided. */
  readonly askedAgain: number;
  /** As `Latency.counts`. */
  readonly latency: readonly number[];
}

/** From the primary to an instance: `go` at a moment of the host's clock; `requests` ahead of theirs. */
export type FromPrimary =
  | { readonly demo: 'go'; readonly at: Milliseconds }
  | { readonly demo: 'requests'; readonly requests: readonly DueRequest[] }
  | { readonly demo: 'stop' };

/** The variable of the environment that carries an instance's settings. */
export const SETTINGS_VARIABLE = 'HEADGATE_DEMO_INSTANCE';
