import type { MicroTokens, Milliseconds } from '../units.js';

/**
 * The tokens one limiter holds on lease for one key: `balance` may be spent before `endsAt`, on the monotonic clock.
 * Whether the lease is alive is asked whenever a token is spent, never left to a timer (rule 5).
 */
export interface Wallet {
  balance: MicroTokens;
  endsAt: Milliseconds;
}

/**
 * When a lease that was asked for at `sentAt` ends for its holder: counted from before the call was sent, and 1 %
 * early, so that a clock that runs slow by as much still ends it before the store does (rule 5).
 */
export function leaseEnd(sentAt: Milliseconds, durationMs: Milliseconds): Milliseconds {
  return sentAt + durationMs * 0.99;
}

/** Tokens that may be spent at `now`. */
export function liveBalance(wallet: Wallet, now: Milliseconds): MicroTokens {
  return now < wallet.endsAt ? wallet.balance : 0;
}

/** Takes `cost` out of a wallet if it is there and alive. */
export function spend(wallet: Wallet, cost: MicroTokens, now: Milliseconds): boolean {
  if (wallet.balance < cost || now >= wallet.endsAt) return false;
  wallet.balance -= cost;
  return true;
}

/** Drops what is left of a lease that has ended; answers how much that was. */
export function expire(wallet: Wallet, now: Milliseconds): MicroTokens {
  if (now < wallet.endsAt || wallet.balance === 0) return 0;
  const dead = wallet.balance;
  wallet.balance = 0;
  return dead;
}

/**
 * Puts a grant in. A lease that ended before the reply came stays dead, and so does a grant whose own end has passed
 * (rule 6); live tokens are extended. Answers the micro-tokens that were dropped.
 */
export function deposit(wallet: Wallet, granted: MicroTokens, endsAt: Milliseconds, now: Milliseconds): MicroTokens {
  let dropped = expire(wallet, now);
  if (now >= endsAt) {
    dropped += granted;
  } else {
    wallet.endsAt = wallet.balance > 0 ? Math.max(wallet.endsAt, endsAt) : endsAt;
    wallet.balance += granted;
  }
  return dropped;
}

/** Takes up to `amount` out to give back to the store; answers how much (0 from a dead lease). */
export function withdraw(wallet: Wallet, amount: MicroTokens, now: Milliseconds): MicroTokens {
  const taken = Math.min(liveBalance(wallet, now), amount);
  wallet.balance -= taken;
  return taken;
}
