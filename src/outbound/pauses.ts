import type { Time } from '../time.js';
import type { Milliseconds } from '../units.js';

/** Above this many upstreams, those whose pause is over are forgotten. */
const PRUNE_ABOVE = 1_000;

/** Until when upstreams want to be left alone. */
export class Pauses {
  readonly #time: Time;
  readonly #until = new Map<string, Milliseconds>();

  constructor(time: Time) {
    this.#time = time;
  }

  /** Leaves `key` alone for `ms` from now; never for less than it is left alone already. */
  begin(key: string, ms: Milliseconds): void {
    if (ms <= 0) return;
    const now = this.#time.now();
    this.#until.set(key, Math.max(this.#until.get(key) ?? 0, now + ms));
    if (this.#until.size <= PRUNE_ABOVE) return;
    for (const [other, until] of this.#until) if (until <= now) this.#until.delete(other);
  }

  /** What is left of the pause of `key`; 0 where there is none. */
  left(key: string): Milliseconds {
    return Math.max(0, (this.#until.get(key) ?? 0) - this.#time.now());
  }

  /**
   * Resolves once the pause of `key` is over, however often it is prolonged meanwhile; to false, at once, as soon as that
   * would be after `deadline`. Keeps the process alive while it waits.
   */
  async over(key: string, deadline: Milliseconds, signal: AbortSignal | undefined): Promise<boolean> {
    for (let left = this.left(key); left > 0; left = this.left(key)) {
      if (this.#time.now() + left > deadline) return false;
      await this.#sleep(left, signal);
    }
    return true;
  }

  #sleep(ms: Milliseconds, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const release = this.#time.keepAlive?.();
      const end = (settle: () => void): void => {
        timer.cancel();
        release?.();
        signal?.removeEventListener('abort', abort);
        settle();
      };
      const abort = (): void => end(() => reject(signal?.reason));
      const timer = this.#time.after(ms, () => end(resolve));
      signal?.addEventListener('abort', abort, { once: true });
    });
  }
}
