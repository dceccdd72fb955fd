import type { CeilingStore } from '../ceiling/ceiling-store.js';
import type { SeatStore } from '../ceiling/seat-store.js';
import { CeilingError, ClosedError, UnknownPolicyError } from '../errors.js';
import type { Fleet } from '../lease/fleet.js';
import { Keeper } from '../lease/keeper.js';
import { WakeQueue } from '../lease/wake-queue.js';
import type { MarkDesk } from '../mark/mark-desk.js';
import { MarkedKeys } from '../mark/marked-keys.js';
import { everyTerms, type Policy } from '../policy/policy.js';
import type { PolicySource } from '../policy/policy-source.js';
import { PolicyBook } from '../policy/publisher.js';
import type { PolicyRegistry } from '../policy/registry.js';
import type { SeatDesk, SeatDeskParts } from '../seat/seat-desk.js';
import type { Observer, PolicyCounters, PolicyGauges } from '../telemetry/observer.js';
import type { Random, Time } from '../time.js';
import type { Milliseconds } from '../units.js';
import type { KeyState } from './key-state.js';
import { lacksCode, loadCode } from './on-demand.js';
import { PolicyLimiter } from './policy-limiter.js';
import { PolicyState } from './policy-state.js';
import { Rereader } from './rereader.js';

/** {@link SeatDesk}, not loaded yet. */
export type SeatDeskClass = new (parts: SeatDeskParts) => SeatDesk;

/** What a limiter is made of; put together by `createLimiter`. */
export interface LimiterParts {
  readonly instanceId: string;
  readonly store: CeilingStore;
  readonly source: PolicySource;
  readonly registry: PolicyRegistry;
  readonly observer: Observer;
  readonly time: Time;
  readonly random: Random;
  readonly holder: string;
  readonly group: string;
  readonly weight: number;
  readonly deadlineMs: Milliseconds;
  readonly maxKeys: number;
  /** Given where a policy is known to need it, so that nobody waits for it to be loaded. */
  readonly seatDesk: SeatDeskClass | undefined;
  readonly Fleet: typeof Fleet | undefined;
  /** Given where others may say what is blocked; else it is loaded by the first who blocks a key here. */
  readonly Marks: typeof MarkDesk | undefined;
  readonly blocksEveryMs: Milliseconds;
  /** Makes of a key the name under which it leaves this process. */
  readonly digest: ((key: string) => string) | undefined;
}

/** A rate limiter: the policies it runs, each with a limiter of its own. */
export class Limiter {
  /** The label this limiter was given for people; the store knows it by a random identity. */
  readonly instanceId: string;
  /** Lists, publishes and watches policies. */
  readonly policies: PolicyBook;
  readonly #parts: LimiterParts;
  readonly #keeper: Keeper;
  readonly #wakes: WakeQueue<KeyState>;
  readonly #rereader: Rereader;
  /** There once it was of use: most limiters never load what counts those in flight. */
  #desk: SeatDesk | undefined;
  readonly #openDesk: (Desk: SeatDeskClass) => SeatDesk;
  readonly #marked = new MarkedKeys((name) => this.#running.get(name)?.limiter);
  /** There where others may say what is blocked, or once it was of use. */
  #marks: MarkDesk | undefined;
  readonly #running = new Map<string, Running>();
  readonly #detach: (() => void)[];
  #closing: Promise<void> | undefined;

  /** @internal Made by `createLimiter`. */
  constructor(parts: LimiterParts) {
    this.#parts = parts;
    this.instanceId = parts.instanceId;
    this.policies = new PolicyBook(parts);
    this.#rereader = new Rereader(parts);
    this.#keeper = new Keeper({
      ...parts,
      accounts: (busyOnly) => this.#accounts(busyOnly),
      settled: (account) => this.#running.get(account.owner.policy.name)?.limiter.settled(account),
      outdated: () => this.#rereader.read(),
    });
    this.#openDesk = (Desk) => {
      this.#desk ??= new Desk({
        ...parts,
        seats: parts.store.seats ?? uncounted,
        ready: () => parts.store.ready,
        fleetSize: () => this.#keeper.fleetSize,
        outdated: () => this.#rereader.read(),
      });
      return this.#desk;
    };
    if (parts.seatDesk) this.#openDesk(parts.seatDesk);
    this.#wakes = new WakeQueue(parts.time, (state) => {
      this.#running.get(state.policy.name)?.limiter.woken(state);
    });
    for (const policy of parts.registry.policies()) this.#run(policy);
    this.#detach = [
      parts.registry.onChange((policy) => this.#run(policy)),
      parts.observer.attach({
        instanceId: parts.instanceId,
        counters: () => this.#counters(),
        gauges: () => this.#gauges(),
      }),
    ];
  }

  /** @internal Hears what is blocked already: no longer than a call may take. */
  async begin(): Promise<void> {
    if (this.#parts.Marks) await this.#openMarks(this.#parts.Marks).begin();
  }

  /** Whether the ceiling store is out of reach at this moment. */
  get degraded(): boolean {
    return this.#keeper.degraded;
  }

  /**
   * The limiter of the policy `name`: the same object for as long as this limiter lives, whatever is published.
   *
   * @throws {UnknownPolicyError} {@link ClosedError}
   */
  policy(name: string): PolicyLimiter {
    if (this.#closing) throw new ClosedError();
    const running = this.#running.get(name);
    if (!running) throw new UnknownPolicyError(name, this.#running.keys());
    return running.limiter;
  }

  /** What has been counted so far, a row for each policy: the numbers the metrics show. */
  stats(): readonly Readonly<PolicyCounters & PolicyGauges>[] {
    return [...this.#running.values()].map(({ state, limiter }) => ({ ...state.counters, ...limiter.gauges() }));
  }

  /**
   * Returns unspent tokens, answers whoever waits ("closed"), stops all timers, and closes what this limiter opened; a
   * client it was given stays open. Takes no longer than two call deadlines.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    const { source, store, observer } = this.#parts;
    for (const detach of this.#detach) detach();
    this.#rereader.close();
    for (const { limiter } of this.#running.values()) limiter.close();
    this.#wakes.close();
    this.#desk?.close();
    this.#marked.closed = true;
    this.#marks?.close();
    await this.#keeper.close();
    for (const part of [source, store]) {
      // What can't be closed is no reason to leave the rest open, nor to fail whoever shuts down.
      try {
        await part.close();
      } catch (error) {
        observer.trouble(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }

  /** Puts a policy in force that is new, or newer than the one that was. */
  #run(policy: Policy): void {
    const running = this.#running.get(policy.name);
    if (lacksCode(policy)) {
      const { observer, registry } = this.#parts;
      // What is in force stays so until the code for the new one is here; one that is newer still is not undone by it.
      const run = (): void => {
        for (const newest of registry.policies()) {
          if (newest.name === policy.name && !this.#closing) this.#run(newest);
        }
      };
      loadCode(policy).then(run, (error: Error) => observer.trouble(error));
      return;
    }
    if (running) {
      running.limiter.replace(policy);
    } else {
      const state = new PolicyState(policy, this.#parts.time.now(), this.#marked.of(policy.name), this.#parts.digest);
      const limiter = new PolicyLimiter({
        ...this.#parts,
        owner: state,
        keeper: this.#keeper,
        wakes: this.#wakes,
        marked: this.#marked,
        marks: () => this.#marks,
        openMarks: () => this.#loadMarks(),
        outdated: () => this.#rereader.read(),
        desk: () => this.#desk,
        openDesk: async () => this.#desk ?? this.#openDesk((await import('../seat/seat-desk.js')).SeatDesk),
      });
      this.#running.set(policy.name, { state, limiter });
    }
    const shared = everyTerms(policy).some(({ ceiling, concurrency }) => ceiling || concurrency);
    if (shared) this.#keeper.start();
  }

  async #loadMarks(): Promise<MarkDesk> {
    const { MarkDesk } = await import('../mark/mark-desk.js');
    if (this.#closing) throw new ClosedError();
    if (this.#marks) return this.#marks;
    const marks = this.#openMarks(MarkDesk);
    void marks.begin();
    return marks;
  }

  #openMarks(Desk: typeof MarkDesk): MarkDesk {
    this.#marks = new Desk({ ...this.#parts, marked: this.#marked });
    return this.#marks;
  }

  *#accounts(busyOnly?: boolean) {
    for (const { limiter } of this.#running.values()) yield* limiter.accounts(busyOnly);
  }

  *#counters() {
    for (const { state } of this.#running.values()) yield state.counters;
  }

  *#gauges() {
    for (const { limiter } of this.#running.values()) yield limiter.gauges();
  }
}

/** A ceiling store that can't count seats is one that never answers: the outage mode decides. */
const uncounted: SeatStore = {
  hold: (calls) => calls.map(() => Promise.reject(new CeilingError('This ceiling store does not count seats.'))),
};

interface Running {
  readonly state: PolicyState;
  readonly limiter: PolicyLimiter;
}
