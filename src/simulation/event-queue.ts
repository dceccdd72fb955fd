import type { Milliseconds } from '../units.js';

/** A handler that is done answers this. */
export const NEVER = Number.POSITIVE_INFINITY;

/** Something that happens at a time, once or again and again. */
export interface Handler {
  /** Whether it settles no promise as it stands: then promises need not be looked after before the next event. */
  readonly quiet: boolean;
  /** Runs at `now`; answers when to run it next, or {@link NEVER}. */
  fire(now: Milliseconds): Milliseconds;
}

/**
 * What is going to happen, in order of time, and of arrival where times are the same: a heap of four children a node,
 * in arrays of plain numbers. A handler that runs again is moved down from the top instead of being taken out and put
 * in, which is most of what a simulated fleet does.
 */
export class EventQueue {
  now: Milliseconds = 0;
  readonly #at: number[] = [];
  readonly #order: number[] = [];
  readonly #handlers: Handler[] = [];
  #arrivals = 0;

  /** When the next event is due. */
  get next(): Milliseconds {
    return this.#at[0] ?? NEVER;
  }

  get size(): number {
    return this.#at.length;
  }

  push(at: Milliseconds, handler: Handler): void {
    const index = this.#at.length;
    this.#at.push(0);
    this.#order.push(0);
    this.#handlers.push(handler);
    this.#rise(index, Math.max(at, this.now), this.#arrivals++, handler);
  }

  /** Runs the next event; answers whether promises may have been settled by it. */
  run(): boolean {
    const handler = this.#handlers[0] as Handler;
    this.now = Math.max(this.now, this.#at[0] as number);
    const { quiet } = handler;
    // What it pushes is never earlier than itself, so it is still on top afterwards.
    const again = handler.fire(this.now);
    if (again < NEVER) {
      this.#sink(Math.max(again, this.now), this.#arrivals++, handler);
    } else {
      const at = this.#at.pop() as number;
      const order = this.#order.pop() as number;
      const last = this.#handlers.pop() as Handler;
      if (this.#at.length > 0) this.#sink(at, order, last);
    }
    return !quiet;
  }

  #rise(from: number, at: number, order: number, handler: Handler): void {
    const ats = this.#at;
    const orders = this.#order;
    const handlers = this.#handlers;
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 2;
      const parentAt = ats[parent] as number;
      if (parentAt < at || (parentAt === at && (orders[parent] as number) < order)) break;
      ats[index] = parentAt;
      orders[index] = orders[parent] as number;
      handlers[index] = handlers[parent] as Handler;
      index = parent;
    }
    ats[index] = at;
    orders[index] = order;
    handlers[index] = handler;
  }

  #sink(at: number, order: number, handler: Handler): void {
    const ats = this.#at;
    const orders = this.#order;
    const handlers = this.#handlers;
    const { length } = ats;
    let index = 0;
    for (;;) {
      const first = 4 * index + 1;
      if (first >= length) break;
      let least = first;
      let leastAt = ats[first] as number;
      const end = Math.min(first + 4, length);
      for (let child = first + 1; child < end; child++) {
        const childAt = ats[child] as number;
        if (childAt < leastAt || (childAt === leastAt && (orders[child] as number) < (orders[least] as number))) {
          least = child;
          leastAt = childAt;
        }
      }
      if (leastAt > at || (leastAt === at && (orders[least] as number) > order)) break;
      ats[index] = leastAt;
      orders[index] = orders[least] as number;
      handlers[index] = handlers[least] as Handler;
      index = least;
    }
    ats[index] = at;
    orders[index] = order;
    handlers[index] = handler;
  }
}

/** A handler that runs `task` once. */
export function once(task: (now: Milliseconds) => void): Handler {
  return {
    quiet: false,
    fire(now) {
      task(now);
      return NEVER;
    },
  };
}
