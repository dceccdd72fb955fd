import type { Time, Timer } from '../time.js';
import type { Account } from './account.js';

/** The accounts that want a call in this turn of the event loop: gathered, so that they go out together. */
export class Tick {
  readonly #time: Pick<Time, 'after'>;
  readonly #flush: () => void;
  #accounts: Account[] = [];
  #timer: Timer | undefined;

  /** @param flush called once at the end of a turn in which anybody was added */
  constructor(time: Pick<Time, 'after'>, flush: () => void) {
    this.#time = time;
    this.#flush = flush;
  }

  /** Adds an account, unless it is there already or has a call under way: then it is asked again when that is over. */
  add(account: Account): void {
    if (account.queued || account.flight) return;
    account.queued = true;
    this.#accounts.push(account);
    this.#timer ??= this.#time.after(0, this.#flush);
  }

  /** Hands over whoever has been added, and begins anew. */
  take(): readonly Account[] {
    this.#timer?.cancel();
    this.#timer = undefined;
    const accounts = this.#accounts;
    this.#accounts = [];
    for (const account of accounts) account.queued = false;
    return accounts;
  }
}
