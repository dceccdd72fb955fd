import {
  type PolicyDocument,
  type PolicyListener,
  type PolicySource,
  PolicySourceError,
  type PolicyUpdate,
} from '../index.js';
import { parentChannel } from './channel.js';
import type { ClusterWorkerOptions } from './cluster-ceiling.js';
import type { Answers, Question } from './messages.js';
import { linkOf, type WorkerLink } from './worker-link.js';

/**
 * The policies that the primary of this worker's cluster keeps (`serveCluster`). Any worker may publish.
 *
 * @throws InvalidOptionError in a process that was not forked with an IPC channel.
 */
export function clusterPolicySource(options: ClusterWorkerOptions = {}): PolicySource {
  return new ClusterPolicySource(linkOf(options.channel ?? parentChannel('clusterPolicySource()')));
}

/** A primary that has not begun to serve by then is waited for no longer: the limiter starts, and says so. */
const PATIENCE_MS = 1_000;

class ClusterPolicySource implements PolicySource {
  readonly #link: WorkerLink;
  readonly #leave: () => void;
  #listener: PolicyListener | undefined;
  #closed = false;
  #lost = false;
  /** Those that wait for the primary to serve, or for this to be closed. */
  #waiting: (() => void)[] = [];

  constructor(link: WorkerLink) {
    this.#link = link;
    this.#leave = link.join({
      serving: () => this.#serving(),
      policy: (update) => this.#listener?.update(update),
      lost: () => {
        this.#lost = true;
        this.#listener?.trouble(new PolicySourceError('The primary of this cluster does not serve policies any more.'));
      },
    });
  }

  async watch(listener: PolicyListener): Promise<void> {
    this.#checkOpen();
    const served = await this.#served();
    if (this.#closed) return;
    this.#listener = listener;
    if (served) return this.#snapshot(listener);
    listener.trouble(
      new PolicySourceError(
        `Expected the primary of this cluster to serve policies (serveCluster()), heard nothing from it for ${PATIENCE_MS} ms: ` +
          'going on with the policies given in code until it does.',
      ),
    );
  }

  list(): Promise<readonly PolicyDocument[]> {
    return this.#ask({ kind: 'list' });
  }

  async publish(document: PolicyDocument, expected: number, trace?: Readonly<Record<string, string>>): Promise<void> {
    await this.#ask({ kind: 'publish', document, expected, ...(trace && { trace }) });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#listener = undefined;
    this.#wake();
    this.#leave();
  }

  /** A primary that begins to serve may know more than the last one told. */
  #serving(): void {
    this.#wake();
    if (this.#listener && this.#lost) {
      this.#lost = false;
      this.#listener.trouble(new PolicySourceError('The primary of this cluster serves policies again.'));
    }
    const listener = this.#listener;
    if (listener) this.#snapshot(listener).catch((error: Error) => this.#listener?.trouble(error));
  }

  async #snapshot(listener: PolicyListener): Promise<void> {
    const updates: readonly PolicyUpdate[] = await this.#link.ask({ kind: 'watch' });
    if (this.#listener === listener) for (const update of updates) listener.update(update);
  }

  async #ask<Asked extends Question>(question: Asked): Promise<Answers[Asked['kind']]> {
    this.#checkOpen();
    if (!(await this.#served())) {
      throw new PolicySourceError('Expected the primary of this cluster to serve policies, it does not.');
    }
    this.#checkOpen();
    return this.#link.ask(question);
  }

  /** Whether the primary serves, given it some time to begin. */
  async #served(): Promise<boolean> {
    if (!this.#link.serving) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, PATIENCE_MS);
        this.#waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return this.#link.serving && !this.#closed;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  #checkOpen(): void {
    if (this.#closed) throw new PolicySourceError('Expected an open policy source, got one that is closed.');
  }
}
