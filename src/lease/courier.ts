import type { CeilingStore, LeaseCall, LeaseReply } from '../ceiling/ceiling-store.js';
import { CeilingError } from '../errors.js';
import type { Observer } from '../telemetry/observer.js';
import { atDeadline, type Time } from '../time.js';
import { MICRO, type Milliseconds } from '../units.js';
import type { Account } from './account.js';
import type { Flight } from './errand.js';
import { Trip } from './trip.js';

export interface CourierParts {
  readonly store: CeilingStore;
  readonly time: Time;
  readonly observer: Observer;
  /** How long a call may take before it is given up. */
  readonly deadlineMs: Milliseconds;
  /** Told of each reply to a call that was not given up. Takes the flight off the account, then settles it. */
  readonly landed: (account: Account, flight: Flight, reply: LeaseReply) => void;
  /** Told once of each call that failed or took too long; likewise. */
  readonly lost: (account: Account, flight: Flight, error: Error) => void;
}

/**
 * Carries calls to the store and their replies back. Each call ends exactly once, landed or lost, and no later than its
 * deadline; what comes for it after that is ignored for ever (rule 4). The store may be anybody's: what it throws, or
 * answers that is no reply, loses the call and nothing else.
 */
export class Courier {
  readonly #parts: CourierParts;
  #underWay = 0;
  #home: (() => void) | undefined;

  constructor(parts: CourierParts) {
    this.#parts = parts;
  }

  /** Resolves once nothing is under way. */
  async allHome(): Promise<void> {
    if (this.#underWay > 0) await new Promise<void>((resolve) => (this.#home = resolve));
  }

  /** Sends the calls of one tick; `callers[i]` made `calls[i]`, and its flight is that of the call. */
  send(calls: readonly LeaseCall[], callers: readonly Account[], now: Milliseconds): void {
    const { observer, store, time, deadlineMs } = this.#parts;
    const trip = new Trip(calls.length);
    const flights = callers.map((account) => account.flight as Flight);
    const lose = (i: number, error: Error): void => {
      const account = callers[i] as Account;
      const flight = flights[i] as Flight;
      if (account.flight !== flight) return;
      trip.failed(error);
      this.#lose(account, flight, error);
    };
    const land = (i: number, reply: LeaseReply): void => {
      const account = callers[i] as Account;
      const flight = flights[i] as Flight;
      if (account.flight !== flight || reply.seq !== flight.seq) return;
      if (reply.status === 'granted') trip.granted += reply.granted / MICRO;
      this.#land(account, flight, reply);
    };
    this.#underWay += calls.length;
    const end = observer.roundTrip(trip.start(calls), () => {
      for (const [i, reply] of repliesOf(store, calls).entries()) {
        reply.then((reply) => land(i, reply)).catch((error: unknown) => lose(i, asError(error)));
      }
    });
    const deadline = atDeadline(time, deadlineMs, () => {
      const error = new CeilingError(`The ceiling store did not answer within ${deadlineMs} ms.`);
      for (let i = 0; i < calls.length; i++) lose(i, error);
    });
    for (const flight of flights) {
      flight.settle = this.#settleOnce(() => {
        if (!trip.settled()) return;
        deadline.cancel();
        end(trip.end(time.now() - now));
      });
    }
  }

  /** A store in this process answers within the call; nothing can be late or doubled. */
  sendNow(call: LeaseCall, account: Account): void {
    const { store } = this.#parts;
    const flight = account.flight as Flight;
    this.#underWay += 1;
    flight.settle = this.#settleOnce(() => {});
    let reply: LeaseReply;
    try {
      reply = (store as Required<CeilingStore>).leaseNow(call);
    } catch (error) {
      this.#lose(account, flight, asError(error));
      return;
    }
    this.#land(account, flight, reply);
  }

  /** What is thrown before the account has been told that the call is over loses the call. */
  #land(account: Account, flight: Flight, reply: LeaseReply): void {
    try {
      this.#parts.landed(account, flight, reply);
    } catch (error) {
      if (account.flight === flight) this.#lose(account, flight, asError(error));
      else this.#broken(flight, error);
    }
  }

  #lose(account: Account, flight: Flight, error: Error): void {
    try {
      this.#parts.lost(account, flight, error);
    } catch (error) {
      if (account.flight === flight) account.flight = undefined;
      account.disown ||= flight.seq;
      this.#broken(flight, error);
    }
  }

  /** A fault here or in who waited for the answer: told, and no call is left for a limiter that closes to wait for. */
  #broken(flight: Flight, error: unknown): void {
    flight.settle();
    this.#parts.observer.trouble(asError(error));
  }

  #settleOnce(then: () => void): () => void {
    let settled = false;
    return () => {
      if (settled) return;
      settled = true;
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#home?.();
      then();
    };
  }
}

/** The replies to `calls`, those that could not even be sent included. */
function repliesOf(store: CeilingStore, calls: readonly LeaseCall[]): readonly Promise<LeaseReply>[] {
  try {
    return store.lease(calls);
  } catch (error) {
    return calls.map(() => Promise.reject(error));
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new CeilingError(String(error));
}
