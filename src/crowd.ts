import type { Time } from './time.js';

/** How many wait. While somebody does, the process must not end for want of anything else to do. */
export class Crowd {
  readonly #time: Time;
  #size = 0;
  #letGo: (() => void) | undefined;

  constructor(time: Time) {
    this.#time = time;
  }

  get size(): number {
    return this.#size;
  }

  grow(by: 1 | -1): void {
    this.#size += by;
    if (this.#size > 0) {
      this.#letGo ??= this.#time.keepAlive?.();
    } else {
      this.#letGo?.();
      this.#letGo = undefined;
    }
  }
}
