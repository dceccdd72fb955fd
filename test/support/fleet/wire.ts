import type { CeilingStore, LeaseCall, LeaseReply } from '../../../src/ceiling/ceiling-store.js';
import type { MicroTokens } from '../../../src/units.js';
import type { Instance } from './instance.js';

/**
 * One call between a limiter and the store, in the hands of the test: it runs at the store when and as often as the
 * test says, and its reply arrives when the test says, or never.
 */
export class Message {
  readonly from: Instance;
  readonly call: LeaseCall;
  /** What the store answered, each time it ran. */
  readonly replies: LeaseReply[] = [];
  /** Nobody will run it any more. */
  lost = false;
  #answer: ((reply: LeaseReply) => void) | undefined;
  #fail: ((error: Error) => void) | undefined;

  constructor(from: Instance, call: LeaseCall) {
    this.from = from;
    this.call = call;
  }

  /** What the keeper is given as a promise. It is answered within {@link deliver}, so that a test has every step in hand. */
  get promise(): Promise<LeaseReply> {
    const thenable = {
      // biome-ignore lint/suspicious/noThenProperty: a thenable is what it is
      then: (answer: (reply: LeaseReply) => void, fail?: (error: Error) => void) => {
        this.#answer = answer;
        this.#fail = fail;
        return thenable;
      },
      catch: (fail: (error: Error) => void) => {
        this.#fail = fail;
        return thenable;
      },
    };
    return thenable as unknown as Promise<LeaseReply>;
  }

  /** Runs at the store now. */
  execute(): LeaseReply {
    const reply = this.from.fleet.execute(this);
    this.replies.push(reply);
    return reply;
  }

  /** Brings a reply to the limiter; the last one where none is named. */
  deliver(reply: LeaseReply | undefined = this.replies.at(-1)): void {
    if (!reply) throw new Error('Expected a message that has run at the store.');
    this.from.act(() => {
      this.#answer?.(this.from.paced(reply));
      this.from.answered();
    });
  }

  fail(error = new Error('connection reset')): void {
    this.from.act(() => this.#fail?.(error));
  }

  /** There and back at once. */
  exchange(): LeaseReply {
    const reply = this.execute();
    this.deliver(reply);
    return reply;
  }

  /** What the store granted, at most, in any of its replies. */
  get granted(): MicroTokens {
    return this.replies.reduce((most, reply) => (reply.status === 'granted' ? Math.max(most, reply.granted) : most), 0);
  }
}

/** A limiter's end of the wire: whatever it sends becomes a {@link Message} of the fleet. */
export class Wire implements CeilingStore {
  ready = true;
  readonly #from: Instance;

  constructor(from: Instance) {
    this.#from = from;
  }

  lease(calls: readonly LeaseCall[]): readonly Promise<LeaseReply>[] {
    return calls.map((call) => {
      const message = new Message(this.#from, this.#from.asked(call));
      this.#from.fleet.sent(message);
      return message.promise;
    });
  }

  heartbeat(): Promise<number> {
    const { fleetSize } = this.#from.fleet.options;
    return fleetSize === undefined ? new Promise(() => {}) : Promise.resolve(fleetSize);
  }

  async close(): Promise<void> {}
}
