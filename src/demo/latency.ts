/** Each doubling of a duration has this many buckets: a percentile is at most 4.4 % off. */
const PER_DOUBLING = 16;
const BUCKETS = 40 * PER_DOUBLING;

/** Durations in nanoseconds, counted in buckets: plain numbers, so that those of many processes can be added up. */
export class Latency {
  readonly counts: number[];

  constructor(counts: readonly number[] = new Array<number>(BUCKETS).fill(0)) {
    this.counts = [...counts];
  }

  record(nanoseconds: number): void {
    const bucket = Math.min(BUCKETS - 1, Math.floor(Math.log2(Math.max(1, nanoseconds)) * PER_DOUBLING));
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
  }

  add(counts: readonly number[]): void {
    for (const [bucket, count] of counts.entries()) this.counts[bucket] = (this.counts[bucket] ?? 0) + count;
  }

  /** The duration that a fraction `p` of all are not above, rounded up to its bucket's end; 0 where there are none. */
  percentile(p: number): number {
    const total = this.counts.reduce((sum, count) => sum + count, 0);
    let seen = 0;
    for (const [bucket, count] of this.counts.entries()) {
      seen += count;
      if (count > 0 && seen >= p * total) return 2 ** ((bucket + 1) / PER_DOUBLING);
    }
    return 0;
  }
}
