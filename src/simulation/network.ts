import type { Milliseconds } from '../units.js';
import type { EventQueue, Handler } from './event-queue.js';
import type { Dice } from './random.js';

/** How messages travel. */
export interface Wire {
  roundTripMs: Milliseconds;
  readonly jitterMs: Milliseconds;
  readonly loss: number;
  readonly duplication: number;
}

/** One instance's way to the others: nothing passes while it is cut. */
export interface Link {
  cutUntil: Milliseconds;
}

/** Carries messages between instances and the store: late, lost, doubled and out of order, as the dice have it. */
export class Network {
  readonly #queue: EventQueue;
  readonly #dice: Dice;
  readonly wire: Wire;
  /** Until when messages are slow, and how slow. */
  slowUntil: Milliseconds = 0;
  slowRoundTripMs: Milliseconds = 0;

  constructor(queue: EventQueue, dice: Dice, wire: Wire) {
    this.#queue = queue;
    this.#dice = dice;
    this.wire = wire;
  }

  /** Sends `message`, one way: it fires on arrival, which may be never or twice. */
  send(link: Link, message: Handler): void {
    if (link.cutUntil > this.#queue.now || this.#dice.chance(this.wire.loss)) return;
    this.#queue.push(this.#queue.now + this.#delay(), message);
    if (this.#dice.chance(this.wire.duplication)) this.#queue.push(this.#queue.now + this.#delay(), message);
  }

  #delay(): Milliseconds {
    const { roundTripMs, jitterMs } = this.wire;
    const roundTrip = this.slowUntil > this.#queue.now ? this.slowRoundTripMs : roundTripMs;
    return roundTrip / 2 + (jitterMs > 0 ? jitterMs * this.#dice.roll() : 0);
  }
}
