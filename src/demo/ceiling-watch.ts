import type { CeilingStore, LeaseCall, LeaseReply, Milliseconds, Tokens } from '../index.js';
import { MemoryCeiling } from '../testing.js';
import { hostNow } from './host-clock.js';

/** The moment a bucket came under newer terms. */
export interface TermsMoment {
  /** Between these two, on the host's clock. */
  readonly from: Milliseconds;
  readonly until: Milliseconds;
  readonly outstanding: Tokens;
}

/**
 * The ceilings of a demo, in the primary's memory and on the host's clock, that note when a policy's terms changed and
 * how much was outstanding then: what the bound of windows across the change depends on.
 */
export class CeilingWatch implements CeilingStore {
  readonly ready = true;
  readonly #memory = new MemoryCeiling({ clock: () => Math.floor(hostNow() * 1_000), newStore: 'full' });
  readonly marks = this.#memory.marks;
  readonly #versions = new Map<string, number>();
  readonly #moments = new Map<string, TermsMoment>();

  lease(calls: readonly LeaseCall[]): Promise<LeaseReply>[] {
    return calls.map(async (call) => {
      const before = this.#versions.get(call.policy) ?? call.version;
      const outstanding = this.#outstanding(call);
      const reply = this.#memory.leaseNow(call);
      this.#versions.set(call.policy, reply.version);
      if (reply.version > before) {
        const at = reply.now / 1_000;
        this.#moments.set(call.policy, { from: at, until: at + 0.001, outstanding });
      }
      return reply;
    });
  }

  heartbeat(group: string, holder: string): Promise<number> {
    return this.#memory.heartbeat(group, holder);
  }

  async close(): Promise<void> {}

  /** When a policy with one key last came under newer terms; `undefined` where it never has. */
  changed(policy: string): TermsMoment | undefined {
    return this.#moments.get(policy);
  }

  #outstanding({ policy, key }: LeaseCall): Tokens {
    const bucket = this.#memory.inspect(policy, key)?.buckets.get(`${policy}:${key}`);
    return (bucket?.outstanding ?? 0) / 1_000_000;
  }
}
