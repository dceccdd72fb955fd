import type { Time } from '../time.js';
import type { Milliseconds } from '../units.js';
import type { Account } from './account.js';
import { type Alarms, WakeQueue } from './wake-queue.js';

/** Wakes accounts: those of each home by their slots, as at rest there is no more of them; those without one themselves. */
export class AccountWakes {
  readonly #time: Time;
  readonly #wake: (account: Account, now: Milliseconds) => void;
  readonly #strays: WakeQueue<Account>;
  readonly #homes: WakeQueue<number>[] = [];

  constructor(time: Time, wake: (account: Account, now: Milliseconds) => void) {
    this.#time = time;
    this.#wake = wake;
    this.#strays = new WakeQueue(time, wake);
  }

  /** For the accounts of one home. */
  ofHome(at: (slot: number) => Account | undefined, alarms: Alarms<number>): WakeQueue<number> {
    const wake = (slot: number, now: Milliseconds): void => {
      const account = at(slot);
      if (account) this.#wake(account, now);
    };
    const wakes = new WakeQueue(this.#time, wake, alarms);
    this.#homes.push(wakes);
    return wakes;
  }

  wakeBy(account: Account, at: Milliseconds): void {
    if (account.home) account.home.wakes.wakeBy(account.slot, at);
    else this.#strays.wakeBy(account, at);
  }

  forget(account: Account): void {
    if (account.home) account.home.wakes.forget(account.slot);
    else this.#strays.forget(account);
  }

  close(): void {
    for (const wakes of [this.#strays, ...this.#homes]) wakes.close();
  }
}
