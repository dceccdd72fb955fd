import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveCluster } from '../cluster/index.js';
import { createLimiter, type Milliseconds, type PolicyBook, type PolicyDocument } from '../index.js';
import { countAdmissions, readAdmissions } from './admission-log.js';
import { CeilingWatch, type TermsMoment } from './ceiling-watch.js';
import { Fleet } from './fleet.js';
import { hostNow } from './host-clock.js';
import { Latency } from './latency.js';
import type { InstanceReport, LoadSettings } from './protocol.js';
import type { FleetHistory, InstanceHistory } from './verdict.js';
import type { CeilingTerms, TermsChange } from './window-bound.js';

export const POLICY = 'headgate-demo';
export const KEY = 'everyone';
/** Load offered, in ceilings. */
export const OVERLOAD = 3;
const LEASE_MS: Milliseconds = 2_000;
/** Between two looks at what has happened. */
const LOOK_MS: Milliseconds = 100;
/** From "go" to the first request, so that all instances have heard it. */
const LEAD_MS: Milliseconds = 200;

/** Something done to the fleet at a moment counted from the start. */
export interface ScenarioEvent {
  readonly atMs: Milliseconds;
  readonly label: string;
  run(scenario: Scenario): void | Promise<void>;
}

export interface ScenarioSettings {
  readonly instances: number;
  readonly durationMs: Milliseconds;
  readonly terms: CeilingTerms;
  readonly redis: string | undefined;
  readonly nats: string | undefined;
  readonly events: readonly ScenarioEvent[];
  /** The file of an instance, where it is not beside this one. */
  readonly worker?: string;
}

/** What is told while a scenario runs. */
export interface ScenarioListener {
  started?(): void;
  look?(elapsedMs: Milliseconds, scenario: Scenario): void;
  event?(event: ScenarioEvent): void;
  trouble?(instance: number, message: string): void;
}

/** A fleet under load, to which things happen; its history is what a verdict is made from. */
export class Scenario {
  readonly fleet: Fleet;
  readonly #settings: ScenarioSettings;
  readonly #directory: string;
  readonly #policies: PolicyBook;
  readonly #watch: CeilingWatch | undefined;
  readonly #absent: { instance: number; from: Milliseconds; to: Milliseconds }[] = [];
  #published: { terms: CeilingTerms; version: number; from: Milliseconds } | undefined;
  #met: Milliseconds | undefined;

  /** Runs it all, from the first fork to the last exit, and leaves no process and no file behind. */
  static async run(settings: ScenarioSettings, listener: ScenarioListener = {}): Promise<FleetHistory> {
    const { nats, redis, terms } = settings;
    const directory = await mkdtemp(join(tmpdir(), 'headgate-demo-'));
    const watch = redis === undefined ? new CeilingWatch() : undefined;
    const server = serveCluster({ ...(watch && { ceiling: watch }) });
    const publisher =
      nats === undefined ? undefined : await createLimiter({ policies: [documentOf(terms)], nats, telemetry: false });
    let scenario: Scenario | undefined;
    try {
      const policies = publisher?.policies ?? server.policies;
      await policies.publish(documentOf(terms));
      scenario = new Scenario(settings, directory, policies, watch, listener);
      return await scenario.#run(listener);
    } finally {
      scenario?.fleet.kill();
      await publisher?.close();
      await server.close();
      await rm(directory, { recursive: true, force: true });
    }
  }

  private constructor(
    settings: ScenarioSettings,
    directory: string,
    policies: PolicyBook,
    watch: CeilingWatch | undefined,
    listener: ScenarioListener,
  ) {
    this.#settings = settings;
    this.#directory = directory;
    this.#policies = policies;
    this.#watch = watch;
    const { instances, terms, redis, nats } = settings;
    const each = Array.from(
      { length: instances },
      (_, instance): LoadSettings => ({
        task: 'load',
        instance,
        directory,
        policies: [documentOf(terms)],
        redis,
        nats,
        policy: POLICY,
        key: KEY,
        demand: (OVERLOAD * terms.rate) / instances,
      }),
    );
    this.fleet = new Fleet(
      each,
      {
        fenced: (_, version, at) => {
          if (version === this.#published?.version) this.#met ??= at;
        },
        trouble: (instance, message) => listener.trouble?.(instance, message),
      },
      settings.worker,
    );
  }

  /** Publishes other terms. */
  async publish(terms: CeilingTerms): Promise<void> {
    const from = hostNow();
    // The store may meet the new terms before the publish is answered.
    this.#published = { terms, version: Number.NaN, from };
    const { version } = await this.#policies.publish(documentOf(terms));
    this.#published = { terms, version, from };
  }

  /** Kills an instance: it gets no chance to return anything. */
  killInstance(instance: number): void {
    const from = this.fleet.signal(instance, 'SIGKILL');
    this.#absent.push({ instance, from, to: Number.POSITIVE_INFINITY });
  }

  /** Stops an instance where it stands, for a while. */
  async freeze(instance: number, forMs: Milliseconds): Promise<void> {
    const from = this.fleet.signal(instance, 'SIGSTOP');
    await sleep(forMs);
    this.#absent.push({ instance, from, to: this.fleet.signal(instance, 'SIGCONT') });
  }

  /** Admissions of an instance so far. */
  admitted(instance: number): number {
    return countAdmissions(this.#directory, instance);
  }

  async #run(listener: ScenarioListener): Promise<FleetHistory> {
    const { durationMs, events } = this.#settings;
    await this.fleet.ready();
    listener.started?.();
    const startAt = hostNow() + LEAD_MS;
    const endAt = startAt + durationMs;
    this.fleet.go(startAt);
    const pending = events.toSorted((a, b) => a.atMs - b.atMs);
    const running: Promise<void>[] = [];
    while (hostNow() < endAt) {
      const elapsed = hostNow() - startAt;
      listener.look?.(Math.max(0, elapsed), this);
      while (pending[0] && pending[0].atMs <= elapsed) {
        const event = pending.shift() as ScenarioEvent;
        listener.event?.(event);
        running.push(Promise.resolve(event.run(this)));
      }
      await sleep(Math.min(LOOK_MS, Math.max(1, endAt - hostNow())));
    }
    listener.look?.(durationMs, this);
    await Promise.all(running);
    const reports = await this.fleet.stop();
    return this.#history(startAt, endAt, reports);
  }

  #history(startAt: Milliseconds, endAt: Milliseconds, reports: (InstanceReport | undefined)[]): FleetHistory {
    const latency = new Latency();
    let decisions = 0;
    let leaseCalls = 0;
    // An instance that was killed could not say how often it called; the others speak for it.
    for (const report of reports) {
      if (!report) continue;
      latency.add(report.latency);
      decisions += report.decisions;
      leaseCalls += report.leaseCalls;
    }
    const instances = reports.map(
      (_, instance): InstanceHistory => ({
        instance,
        admissions: readAdmissions(this.#directory, instance),
        absent: this.#absent.filter((span) => span.instance === instance),
      }),
    );
    return {
      startAt,
      endAt,
      terms: this.#settings.terms,
      change: this.#change(),
      instances,
      decisions,
      leaseCalls,
      decisionNs: { p50: latency.percentile(0.5), p99: latency.percentile(0.99) },
    };
  }

  /** The change of terms as exactly as it is known: by the store itself, or else by the first to have told the store. */
  #change(): TermsChange | undefined {
    if (!this.#published) return undefined;
    const { terms: after, from } = this.#published;
    const { terms: before } = this.#settings;
    const moment = this.#watch ? this.#watch.changed(POLICY) : seenMoment(from, this.#met, before);
    if (!moment) return undefined;
    const payOffMs = (Math.max(0, before.burst - after.burst) / after.rate) * 1_000;
    return { after, ...moment, settledAt: moment.until + LEASE_MS * 1.01 + 100 + payOffMs };
  }
}

/** Seen from outside, all that is known of what was outstanding is that it was within the burst. */
function seenMoment(
  from: Milliseconds,
  until: Milliseconds | undefined,
  before: CeilingTerms,
): TermsMoment | undefined {
  return until === undefined ? undefined : { from, until, outstanding: before.burst };
}

export function documentOf({ rate, burst }: CeilingTerms): PolicyDocument {
  return { name: POLICY, ceiling: { rate, burst }, lease: { durationMs: LEASE_MS } };
}
