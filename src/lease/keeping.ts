import type { Policy, Terms } from '../policy/policy.js';
import { MICRO, type MicroTokens, type Milliseconds } from '../units.js';
import { type Demand, followedPerSecond } from './sizing.js';
import type { Wallet } from './wallet.js';

/** An account with tokens and no traffic for this long gives them back: and well before a short lease ends. */
const IDLE_MS: Milliseconds = 500;
const IDLE_OF_LEASE = 0.4;
/** Where nobody is held to a share, one that is rarely asked for may miss so many of its turns first. */
const IDLE_INTERVALS = 3;
/** And so many where what it holds is not missed elsewhere. */
const PLENTIFUL_IDLE_INTERVALS = 6;
/** A lease with less than this left is renewed, so that no token ends in a wallet that is spent slowly. */
const RENEW_OF_LEASE = 0.25;
/** And later where tokens that end cost less than calls, but in time for a call that fails and another. */
const PLENTIFUL_RENEW_OF_LEASE = 0.1;
const PLENTIFUL_RENEW_MS: Milliseconds = 250;
/**
 * A batch is never sized for more of its lease than this: the rest of it would end in the wallet. Where demand fits, what
 * is not asked for after all may well wait for the renewal.
 */
const HORIZON_OF_LEASE = 0.4;
const ROOMY_HORIZON_OF_LEASE = 0.8;
/** Told a horizon of this, at most a fifth of the rate is asked for (see the allotment): tokens cost less than calls. */
const PLENTY_MS: Milliseconds = 1_200;
/** Less than this asked for in a lease: not worth a call to keep, nor one to give back. */
const LEAST_KEPT: MicroTokens = 3 * MICRO;
/** And of the burst at most a part in so many: until the next call the bucket takes what has lapsed to be held. */
const LAPSED_PARTS = 16;

/** Of an account, what decides how much it holds ready and for how long. */
export interface Holding extends Wallet, Demand {
  readonly policy: Policy;
  readonly terms: Terms;
  /** The holder's share of the rate, micro-tokens a second; 0 while demand fits. */
  readonly level: number;
  /** The span of demand to hold ready, as the last reply said. */
  readonly toldHorizonMs: Milliseconds;
  readonly activeAt: Milliseconds;
  readonly leaseCut: boolean;
  readonly giveBack: boolean;
}

/** Whether the store can spare more than is asked for during a whole lease: then a batch is sized for all of it. */
export function isPlentiful({ level, toldHorizonMs, policy }: Holding): boolean {
  return level === 0 && toldHorizonMs >= Math.max(PLENTY_MS, policy.lease.durationMs);
}

/** The span of demand one batch is sized for. */
export function horizonOf(holding: Holding): Milliseconds {
  const { level, toldHorizonMs, policy } = holding;
  const part = isPlentiful(holding) ? 1 : level > 0 ? HORIZON_OF_LEASE : ROOMY_HORIZON_OF_LEASE;
  return Math.min(toldHorizonMs, part * policy.lease.durationMs);
}

/** When it will have been unused for long enough to give back what it holds, if nobody asks until then. */
export function unusedAt(holding: Holding): Milliseconds {
  const { level, activeAt } = holding;
  const { durationMs } = holding.policy.lease;
  const soon = Math.min(IDLE_MS, IDLE_OF_LEASE * durationMs);
  if (level > 0) return activeAt + soon;
  const interval = (MICRO / followedPerSecond(holding)) * 1_000;
  const missable = isPlentiful(holding) ? PLENTIFUL_IDLE_INTERVALS : IDLE_INTERVALS;
  return activeAt + Math.max(soon, Math.min(missable * interval, durationMs));
}

/** When what it holds must next be looked at: to be renewed, given back or, where that is not worth a call, dropped. */
export function reviewAt(holding: Holding): Milliseconds {
  if (mayLapse(holding)) return holding.endsAt;
  // What it does not need is given back by the renewal.
  const { durationMs } = holding.policy.lease;
  const early = RENEW_OF_LEASE * durationMs;
  const late = Math.max(PLENTIFUL_RENEW_OF_LEASE * durationMs, PLENTIFUL_RENEW_MS);
  const leftMs = isPlentiful(holding) ? Math.min(early, late) : early;
  const renewAt = holding.leaseCut ? holding.endsAt : holding.endsAt - leftMs;
  return Math.min(unusedAt(holding), renewAt);
}

/** Whether what is left may as well end in the wallet: nobody will miss it. */
function mayLapse(holding: Holding): boolean {
  const { level, toldHorizonMs, giveBack, balance, terms, policy } = holding;
  if (level > 0 || toldHorizonMs < PLENTY_MS || giveBack) return false;
  if (LAPSED_PARTS * balance > (terms.ceiling?.burst ?? 0)) return false;
  return (followedPerSecond(holding) * policy.lease.durationMs) / 1_000 < LEAST_KEPT;
}
