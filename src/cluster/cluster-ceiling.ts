import type { MarkStore } from '../ceiling/mark-store.js';
import type { PaceStore } from '../ceiling/pace-store.js';
import type { SeatStore } from '../ceiling/seat-store.js';
import { CeilingError, type CeilingStore, type LeaseCall, type LeaseReply } from '../index.js';
import { type Channel, parentChannel } from './channel.js';
import { linkOf, type WorkerLink } from './worker-link.js';

/** Settings of {@link clusterCeiling} and `clusterPolicySource`. */
export interface ClusterWorkerOptions {
  /** The channel to the process that serves. Default: that of this process to the one that forked it. */
  readonly channel?: Channel;
}

/**
 * The ceilings that the primary of this worker's cluster keeps (`serveCluster`), for fleets on one machine:
 *
 *     const limiter = await createLimiter({ ceiling: clusterCeiling(), policySource: clusterPolicySource() });
 *
 * Until the primary serves, and after it has stopped, the store is not ready, and the policy's outage mode answers.
 *
 * @throws InvalidOptionError in a process that was not forked with an IPC channel.
 */
export function clusterCeiling(options: ClusterWorkerOptions = {}): CeilingStore {
  return new ClusterCeiling(linkOf(options.channel ?? parentChannel('clusterCeiling()')));
}

const nothing = (): void => {};

class ClusterCeiling implements CeilingStore {
  readonly #link: WorkerLink;
  readonly #leave: () => void;
  #closed = false;

  constructor(link: WorkerLink) {
    this.#link = link;
    this.#leave = link.join({ serving: nothing, policy: nothing, lost: nothing });
  }

  get ready(): boolean {
    return !this.#closed && this.#link.serving;
  }

  /** All calls of a tick travel in one message, and are answered in one. */
  lease(calls: readonly LeaseCall[]): Promise<LeaseReply>[] {
    const answer = this.#closed ? closed() : this.#link.ask({ kind: 'lease', calls });
    return calls.map(async (_, index) => replyOf(await answer, index));
  }

  readonly pacer: PaceStore = {
    pace: (calls) => {
      const answer = this.#closed ? closed() : this.#link.ask({ kind: 'pace', calls });
      return calls.map(async (_, index) => replyOf(await answer, index));
    },
  };

  readonly seats: SeatStore = {
    hold: (calls) => {
      const answer = this.#closed ? closed() : this.#link.ask({ kind: 'hold', calls });
      return calls.map(async (_, index) => replyOf(await answer, index));
    },
  };

  readonly marks: MarkStore = {
    mark: (call) => (this.#closed ? closed() : this.#link.ask({ kind: 'mark', call })),
    feed: (era, seq, reading) => (this.#closed ? closed() : this.#link.ask({ kind: 'feed', era, seq, reading })),
  };

  async heartbeat(group: string, holder: string): Promise<number> {
    return this.#closed ? closed() : this.#link.ask({ kind: 'heartbeat', group, holder });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#leave();
  }
}

function replyOf<T>(replies: readonly T[], index: number): T {
  const reply = replies[index];
  if (!reply) throw new CeilingError('Expected a reply for each call from the primary, got fewer.');
  return reply;
}

function closed(): Promise<never> {
  return Promise.reject(new CeilingError('The ceiling is closed.'));
}
