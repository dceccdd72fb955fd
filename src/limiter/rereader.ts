import type { PolicySource } from '../policy/policy-source.js';
import type { PolicyRegistry } from '../policy/registry.js';
import type { Observer } from '../telemetry/observer.js';
import type { Time } from '../time.js';
import type { Milliseconds } from '../units.js';

/** The source is read again at most this often: every reply says that it is behind, until it no longer is. */
const PAUSE_MS: Milliseconds = 1_000;

export interface RereaderParts {
  readonly source: PolicySource;
  readonly registry: PolicyRegistry;
  readonly observer: Observer;
  readonly time: Time;
}

/**
 * Reads the policy source again when the ceiling store was seen to know newer terms than this instance: one read at a
 * time, and not again at once where the source has nothing newer or can't be reached.
 */
export class Rereader {
  readonly #parts: RereaderParts;
  #nextAt: Milliseconds = Number.NEGATIVE_INFINITY;
  #reading = false;
  #closed = false;

  constructor(parts: RereaderParts) {
    this.#parts = parts;
  }

  read(): void {
    const now = this.#parts.time.now();
    if (this.#closed || this.#reading || now < this.#nextAt) return;
    this.#nextAt = now + PAUSE_MS;
    void this.#read();
  }

  close(): void {
    this.#closed = true;
  }

  async #read(): Promise<void> {
    const { source, registry, observer } = this.#parts;
    this.#reading = true;
    try {
      for (const document of await source.list()) {
        if (!this.#closed) registry.apply({ name: document.name, document, via: 'watch' });
      }
    } catch (error) {
      observer.trouble(error instanceof Error ? error : new Error(String(error)));
    } finally {
      this.#reading = false;
    }
  }
}
