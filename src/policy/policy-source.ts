import type { PolicyDocument } from './policy.js';

/** One change of a policy as a source saw it. The document is unchecked: the registry parses it. */
export interface PolicyUpdate {
  readonly name: string;
  /** As it came; `undefined` where the policy was removed (the last good one stays in force and is reported). */
  readonly document: unknown;
  /** By which road it came: `snapshot` (state when watching began), `watch` (the truth) or `hint` (the quick copy). */
  readonly via: 'snapshot' | 'watch' | 'hint';
  /** Wall-clock ms at which the publisher sent it, where known: the propagation lag is counted from it. */
  readonly publishedAt?: number;
  /** Carrier of the publisher's trace context (`traceparent`, `tracestate`), where it came with one. */
  readonly trace?: Readonly<Record<string, string>>;
}

/** Told by a source. Must not throw. */
export interface PolicyListener {
  update(update: PolicyUpdate): void;
  /** The source lost or regained its connection, or met something it can't use. Never fatal: known policies stay. */
  trouble(error: Error): void;
}

/**
 * Where policies come from.
 *
 * Contract: `watch` delivers the present state as `snapshot` updates, resolves once those are in, and keeps delivering
 * until stopped; it may repeat and reorder (versions decide), but after any outage it delivers the newest state of
 * every policy without being asked. It rejects only where it can never work (`PolicySourceError`). `publish` is a
 * compare-and-set: it writes `document` (its `version` already set) only while the stored version of that name is
 * `expected` (0: none stored), else rejects with `PolicyConflictError`; a source that can't be written rejects with
 * `PolicySourceError`. `close` stops all of it and closes only what the source opened.
 */
export interface PolicySource {
  watch(listener: PolicyListener): Promise<void>;
  list(): Promise<readonly PolicyDocument[]>;
  publish(document: PolicyDocument, expected: number, trace?: Readonly<Record<string, string>>): Promise<void>;
  close(): Promise<void>;
}
