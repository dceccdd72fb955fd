import type { ServerResponse } from 'node:http';

/** As much of an `AbortSignal` as a wait uses. */
export type WaitSignal = Pick<
  AbortSignal,
  'aborted' | 'reason' | 'throwIfAborted' | 'addEventListener' | 'removeEventListener'
>;

/**
 * Tells a wait that the client of a Node request has hung up. Hardly any request waits, and a signal for each that does
 * not would cost more than all the rest of passing it: this one listens to the response only while somebody listens to it.
 */
export class HangUp implements WaitSignal {
  readonly #outgoing: ServerResponse;

  constructor(outgoing: ServerResponse) {
    this.#outgoing = outgoing;
  }

  get aborted(): boolean {
    return this.#outgoing.destroyed;
  }

  get reason(): Error {
    return new Error('The client has hung up.');
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#outgoing.once('close', listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#outgoing.off('close', listener);
  }
}
