import { MICRO } from '../../../src/units.js';
import { ROUNDING } from './fleet-oracle.js';

/** What may go wrong in a run, besides lost, late, doubled and reordered messages, crashes, stalls and drift. */
export const PROFILES = ['pure', 'skew', 'steps', 'policy', 'loss', 'strict', 'failover', 'evicted'] as const;
export type Profile = (typeof PROFILES)[number];

/** How far a run went over its bounds, in tokens (at most 0: nowhere), and how hard the fleet was driven. */
export interface Run {
  readonly potential: number;
  readonly window: number;
  readonly rise: number;
  /** Admitted ÷ all that could have been. */
  readonly saturation: number;
  /** Lives of instances, calls that ran. */
  readonly calls: number;
}

/** The oracles that a run has failed; none of them: it kept its bounds. */
export function broken(run: Run): string[] {
  return (['potential', 'window', 'rise'] as const).filter((oracle) => run[oracle] > ROUNDING / MICRO);
}
