import type { Microseconds } from '../units.js';

/** Counts over time, of a span that nobody knows beforehand: where it grows too long, spans are joined in pairs. */
export class Timeline {
  /** When the first span begins. */
  from: Microseconds | undefined;
  /** How long each is. */
  every: Microseconds = 1_000_000;
  admitted: number[] = [];
  denied: number[] = [];
  readonly #most: number;

  /** @param most spans; even. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Counts a request; times never go back. */
  count(allowed: boolean, at: Microseconds): void {
    this.from ??= at;
    let span = Math.floor((at - this.from) / this.every);
    while (span >= this.#most) {
      this.every *= 2;
      this.admitted = joined(this.admitted);
      this.denied = joined(this.denied);
      span = Math.floor((at - this.from) / this.every);
    }
    while (this.admitted.length <= span) {
      this.admitted.push(0);
      this.denied.push(0);
    }
    const counts = allowed ? this.admitted : this.denied;
    counts[span] = (counts[span] ?? 0) + 1;
  }
}

function joined(counts: readonly number[]): number[] {
  return Array.from(
    { length: Math.ceil(counts.length / 2) },
    (_, i) => (counts[2 * i] ?? 0) + (counts[2 * i + 1] ?? 0),
  );
}
