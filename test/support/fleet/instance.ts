import type { GrantReply, LeaseCall, LeaseReply } from '../../../src/ceiling/ceiling-store.js';
import type { Account } from '../../../src/lease/account.js';
import { liveBalance } from '../../../src/lease/wallet.js';
import type { Limiter } from '../../../src/limiter/limiter.js';
import type { PolicyLimiter } from '../../../src/limiter/policy-limiter.js';
import type { PolicyDocument } from '../../../src/policy/policy.js';
import type { PolicyListener, PolicySource } from '../../../src/policy/policy-source.js';
import { type PolicyCounters, silentObserver } from '../../../src/telemetry/observer.js';
import { MICRO, type MicroTokens, type Tokens } from '../../../src/units.js';
import { KEY } from './bucket-view.js';
import type { MachineTime } from './clocks.js';
import type { Fleet } from './fleet.js';
import { type Message, Wire } from './wire.js';

/** What a call asks for: any limiter might, so the test chooses it. What it reports, returns and disowns is the product's. */
export type Ask = Partial<Pick<LeaseCall, 'need' | 'head' | 'want' | 'demand'>>;

/** When a reply says to come back and how much to hold: likewise the test's. What it grants is the product's. */
export type Pace = Partial<Pick<GrantReply, 'level' | 'horizon' | 'next' | 'retry' | 'giveBack'>>;

/** One limiter of the fleet: the production one, made by `createLimiter`, on a machine and a wire in the test's hands. */
export class Instance {
  readonly fleet: Fleet;
  readonly time: MachineTime;
  readonly wire = new Wire(this);
  readonly sent: Message[] = [];
  limiter!: Limiter;
  api!: PolicyLimiter;
  holder = '';
  /** Burst of the policy it was made with: a larger cost would be the caller's mistake. */
  largestCost: Tokens = 0;
  /** Crashed or closed: it decides nothing any more, though its messages may still arrive. */
  dead = false;
  stalledUntilUs = 0;
  /** Calls the store only when the test wants it to, however little it has left. */
  calm = false;
  /** `undefined`: what the limiter asks for by itself. */
  ask: Ask | undefined;
  pace: Pace | undefined;
  #listener: PolicyListener | undefined;
  #counters: PolicyCounters | undefined;
  #counted: Tokens = 0;

  constructor(fleet: Fleet, time: MachineTime) {
    this.fleet = fleet;
    this.time = time;
  }

  async start(document: PolicyDocument, instanceId: string): Promise<this> {
    this.limiter = await this.fleet.production.createLimiter({
      policies: [document],
      policySource: this.#source(),
      ceiling: this.wire,
      instanceId,
      callDeadlineMs: this.fleet.options.deadlineMs,
      time: this.time,
      random: this.fleet.chance.next,
      observer: {
        ...silentObserver,
        attach: (readings) => {
          this.#counters = [...readings.counters()][0] as PolicyCounters;
          return () => {};
        },
      },
      onTrouble: () => {},
    });
    this.api = this.limiter.policy(document.name);
    this.largestCost = (this.api.policy.terms.ceiling?.burst ?? 0) / MICRO;
    return this;
  }

  /** Tells this instance of a policy. */
  hears(document: PolicyDocument): void {
    this.act(() => this.#listener?.update({ name: document.name, document, via: 'watch' }));
  }

  /** One attempt; answers whether it was allowed. */
  attempt(cost: Tokens = 1): boolean {
    let allowed = false;
    this.act(() => {
      allowed = this.api.tryAcquire(KEY, cost);
    });
    return allowed;
  }

  /** Spends up to `most` tokens of what is in hand; answers how many. */
  spend(most: Tokens = Number.POSITIVE_INFINITY): Tokens {
    let left = Math.min(most, Math.floor(this.live / MICRO));
    let spent = 0;
    const largest = Math.min(this.largestCost, Math.floor((this.api.policy.terms.ceiling?.burst ?? 0) / MICRO));
    while (left > 0) {
      const cost = Math.min(left, largest);
      if (cost < 1 || !this.attempt(cost)) break;
      left -= cost;
      spent += cost;
    }
    return spent;
  }

  /** The key's dealings with the ceiling, where it is known here. */
  get account(): Account | undefined {
    for (const account of this.api.accounts()) return account;
    return undefined;
  }

  /** What it could spend now. */
  get live(): MicroTokens {
    const { account } = this;
    return this.dead || !account ? 0 : liveBalance(account, this.time.now());
  }

  crash(): void {
    this.dead = true;
  }

  /** Does something with this instance, then lets it finish its turn; what it admitted meanwhile is counted. */
  act(what: () => void): void {
    if (this.dead) return;
    what();
    this.turn();
  }

  /** Runs what is due here, unless it is stalled, and counts what was admitted. */
  turn(): void {
    if (this.dead) return;
    if (this.fleet.time.us >= this.stalledUntilUs) this.time.runDue();
    const counters = this.#counters;
    if (!counters) return;
    const admitted = counters.tokensSpent + counters.tokensUnleased;
    if (admitted === this.#counted) return;
    this.fleet.admitted(Math.round((admitted - this.#counted) * MICRO));
    this.#counted = admitted;
  }

  /** @internal */
  answered(): void {
    if (this.calm && this.account) this.account.lowWater = 0;
  }

  /** @internal */
  asked(call: LeaseCall): LeaseCall {
    this.holder = call.holder;
    return this.ask ? { ...call, ...this.ask } : call;
  }

  /** @internal */
  paced(reply: LeaseReply): LeaseReply {
    return this.pace && reply.status === 'granted' ? { ...reply, ...this.pace } : reply;
  }

  #source(): PolicySource {
    return {
      watch: async (listener) => {
        this.#listener = listener;
      },
      // Answered within the call or never: how news travels is the test's to say.
      list: () => {
        const thenable = {
          // biome-ignore lint/suspicious/noThenProperty: a thenable is what it is
          then: (answer: (documents: readonly PolicyDocument[]) => void) => {
            const news = this.fleet.newsFor(this);
            if (news) answer([news]);
          },
        };
        return thenable as unknown as Promise<readonly PolicyDocument[]>;
      },
      publish: () => Promise.reject(new Error('not here')),
      close: async () => {},
    };
  }
}
