import type { Time, Timer } from '../time.js';
import type { Milliseconds } from '../units.js';

/** What can be woken: it carries its own due time, so that setting it off or forward costs nothing. */
export interface Sleeper {
  /** When to wake it; Infinity: not at all. Written by {@link WakeQueue} only. */
  wakeAt: Milliseconds;
}

/** Most sleepers woken in one go, so that a million that fall due together do not hold up everything else. */
const AT_ONCE = 1_000;
/** Timers fire at once for anything longer than this (2^31 − 1 ms); whoever sleeps longer is looked at in between. */
const LONGEST_MS: Milliseconds = 2_147_483_647;
/** Slots left empty are swept out of the order when there are this many of them, and more than of the others. */
const EMPTY_SLOTS = 64;

/** Width of a slot: nobody is woken early, and nobody later than this after its time. */
const SLOT_MS = 1;

/**
 * Wakes many sleepers with one timer. Due times are kept in slots of 1 ms, and the slots that have sleepers in a heap:
 * putting one in or moving it is O(1) but for the first of its slot.
 */
export class WakeQueue<S extends Sleeper> {
  readonly #time: Time;
  readonly #wake: (sleeper: S, now: Milliseconds) => void;
  readonly #slots = new Map<number, Set<S>>();
  /** The numbers of the slots, as a binary heap; a slot that has been emptied meanwhile is skipped when it comes up. */
  readonly #order: number[] = [];
  #timer: Timer | undefined;
  #timerSlot = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(time: Time, wake: (sleeper: S, now: Milliseconds) => void) {
    this.#time = time;
    this.#wake = wake;
  }

  /** Wakes `sleeper` at `at`, or when it was due already if that is earlier. */
  wakeBy(sleeper: S, at: Milliseconds): void {
    if (at >= sleeper.wakeAt || this.#closed) return;
    this.#leave(sleeper);
    const slot = slotOf(at);
    sleeper.wakeAt = at;
    let sleepers = this.#slots.get(slot);
    if (!sleepers) {
      sleepers = new Set();
      this.#sweepOrder();
      this.#slots.set(slot, sleepers);
      pushHeap(this.#order, slot);
    }
    sleepers.add(sleeper);
    this.#arm(slot);
  }

  /** Takes a sleeper out; it can be put in again. */
  forget(sleeper: S): void {
    this.#leave(sleeper);
    sleeper.wakeAt = Number.POSITIVE_INFINITY;
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#slots.clear();
    this.#order.length = 0;
  }

  #leave(sleeper: S): void {
    if (sleeper.wakeAt === Number.POSITIVE_INFINITY) return;
    const slot = slotOf(sleeper.wakeAt);
    const sleepers = this.#slots.get(slot);
    sleepers?.delete(sleeper);
    if (sleepers?.size === 0) this.#slots.delete(slot);
  }

  /** Who is moved leaves a number behind in the order, which far ahead would lie there for days. */
  #sweepOrder(): void {
    if (this.#order.length < 2 * this.#slots.size + EMPTY_SLOTS) return;
    this.#order.length = 0;
    for (const slot of this.#slots.keys()) pushHeap(this.#order, slot);
  }

  #arm(slot: number): void {
    if (slot >= this.#timerSlot || this.#closed) return;
    this.#timer?.cancel();
    this.#timerSlot = slot;
    const delay = Math.max(1, slot * SLOT_MS - this.#time.now());
    this.#timer = this.#time.after(Math.min(delay, LONGEST_MS), () => this.#ring());
  }

  #ring(): void {
    this.#timer = undefined;
    this.#timerSlot = Number.POSITIVE_INFINITY;
    const now = this.#time.now();
    const due: S[] = [];
    while (due.length < AT_ONCE && this.#order.length > 0 && (this.#order[0] as number) * SLOT_MS <= now) {
      this.#empty(this.#order[0] as number, due);
    }
    for (const sleeper of due) this.#wake(sleeper, now);
    const next = this.#order[0];
    if (next !== undefined) this.#arm(next);
  }

  /** Moves the sleepers of the first slot to those that are `due`, as far as there is room. */
  #empty(slot: number, due: S[]): void {
    const sleepers = this.#slots.get(slot);
    for (const sleeper of sleepers ?? []) {
      if (due.length >= AT_ONCE) return;
      sleepers?.delete(sleeper);
      sleeper.wakeAt = Number.POSITIVE_INFINITY;
      due.push(sleeper);
    }
    this.#slots.delete(slot);
    popHeap(this.#order);
  }
}

function slotOf(at: Milliseconds): number {
  return Math.ceil(at / SLOT_MS);
}

function pushHeap(heap: number[], value: number): void {
  let i = heap.push(value) - 1;
  while (i > 0) {
    const parent = (i - 1) >> 1;
    if ((heap[parent] as number) <= value) break;
    heap[i] = heap[parent] as number;
    i = parent;
  }
  heap[i] = value;
}

function popHeap(heap: number[]): number {
  const top = heap[0] as number;
  const value = heap.pop() as number;
  if (heap.length === 0) return top;
  let i = 0;
  for (;;) {
    let child = 2 * i + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && (heap[child + 1] as number) < (heap[child] as number)) child += 1;
    if ((heap[child] as number) >= value) break;
    heap[i] = heap[child] as number;
    i = child;
  }
  heap[i] = value;
  return top;
}
