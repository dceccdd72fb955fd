import type { Tokens } from '../units.js';

/** What one instance was offered and got of one bucket. */
export interface Share {
  readonly weight: number;
  calls: number;
  offered: Tokens;
  admitted: Tokens;
}

/** How evenly a bucket was shared. */
export interface Fairness {
  /** Jain's index of admitted ÷ fair share: 1 where all got the same part of it. */
  readonly jain: number;
  /** Smallest and largest admitted ÷ fair share of any instance. */
  readonly smallest: number;
  readonly largest: number;
}

/**
 * The level of weighted max-min sharing: that at which Σ min(demand, weight·level) uses up `capacity`; Infinity where
 * all demands fit. The plain computation, by sorting.
 */
export function maxMinLevel(shares: readonly { demand: number; weight: number }[], capacity: number): number {
  const sorted = [...shares].sort((a, b) => a.demand / a.weight - b.demand / b.weight);
  let left = capacity;
  let weight = sorted.reduce((sum, share) => sum + share.weight, 0);
  for (const share of sorted) {
    if ((share.demand / share.weight) * weight > left) return left / weight;
    left -= share.demand;
    weight -= share.weight;
  }
  return Number.POSITIVE_INFINITY;
}

/** Holds what each instance got against its max-min share of `capacity`, by what it was really offered. */
export function fairness(shares: readonly Share[], capacity: Tokens): Fairness | undefined {
  const asked = shares.filter(({ offered }) => offered > 0);
  if (asked.length === 0) return undefined;
  const level = maxMinLevel(
    asked.map(({ offered, weight }) => ({ demand: offered, weight })),
    capacity,
  );
  const parts = asked.map(({ offered, admitted, weight }) => admitted / Math.min(offered, level * weight));
  const sum = parts.reduce((total, part) => total + part, 0);
  const squares = parts.reduce((total, part) => total + part * part, 0);
  return {
    jain: squares === 0 ? 0 : (sum * sum) / (parts.length * squares),
    smallest: parts.reduce((least, part) => Math.min(least, part), Number.POSITIVE_INFINITY),
    largest: parts.reduce((most, part) => Math.max(most, part), 0),
  };
}
