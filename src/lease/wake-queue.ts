import type { Time, Timer } from '../time.js';
import type { Milliseconds } from '../units.js';

/** What can be woken: it carries its own due time, so that setting it off or forward costs nothing. */
export interface Sleeper {
  /** When to wake it; Infinity: not at all. Written by {@link WakeQueue} only. */
  wakeAt: Milliseconds;
}

/** Where the due times of sleepers are that are no objects. */
export interface Alarms<S> {
  wakeAt(sleeper: S): Milliseconds;
  setWakeAt(sleeper: S, at: Milliseconds): void;
}

const OWN_ALARM: Alarms<Sleeper> = {
  wakeAt: (sleeper) => sleeper.wakeAt,
  setWakeAt: (sleeper, at) => {
    sleeper.wakeAt = at;
  },
};

/** Most sleepers woken in one go, so that a million that fall due together do not hold up everything else. */
const AT_ONCE = 1_000;
/** Timers fire at once for anything longer than this (2^31 − 1 ms); whoever sleeps longer is looked at in between. */
const LONGEST_MS: Milliseconds = 2_147_483_647;
/** Places left by sleepers that were moved or taken out are swept when there are this many, and more than of the others. */
const LEFT = 64;

/** Width of a slot: nobody is woken early, and nobody later than this after its time. */
const SLOT_MS = 1;

/** Who is due in one slot, in the order they came, from `next` on; and some who were, and have been moved or taken out. */
interface Slot<S> {
  sleepers: S[];
  next: number;
}

/**
 * Wakes many sleepers with one timer. Due times are kept in slots of 1 ms, and the slots that have sleepers in a heap:
 * putting one in or moving it is O(1) but for the first of its slot. Who is moved or taken out leaves its place behind,
 * which its due time tells from one that it still has: a place is eight bytes, and there may be a million.
 */
export class WakeQueue<S extends Sleeper | number> {
  readonly #time: Time;
  readonly #wake: (sleeper: S, now: Milliseconds) => void;
  readonly #alarms: Alarms<S>;
  readonly #slots = new Map<number, Slot<S>>();
  /** The numbers of the slots, as a binary heap. */
  readonly #order: number[] = [];
  /** Those who sleep, and the places of all. */
  #sleepers = 0;
  #places = 0;
  #timer: Timer | undefined;
  #timerSlot = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(
    time: Time,
    wake: (sleeper: S, now: Milliseconds) => void,
    alarms: Alarms<S> = OWN_ALARM as Alarms<Sleeper | number>,
  ) {
    this.#time = time;
    this.#wake = wake;
    this.#alarms = alarms;
  }

  /** Wakes `sleeper` at `at`, or when it was due already if that is earlier. */
  wakeBy(sleeper: S, at: Milliseconds): void {
    const before = this.#alarms.wakeAt(sleeper);
    if (at >= before || this.#closed) return;
    const slot = slotOf(at);
    this.#alarms.setWakeAt(sleeper, at);
    if (slot === slotOf(before)) return;
    if (before === Number.POSITIVE_INFINITY) this.#sleepers += 1;
    this.#places += 1;
    const known = this.#slots.get(slot);
    if (known) {
      known.sleepers.push(sleeper);
    } else {
      this.#slots.set(slot, { sleepers: [sleeper], next: 0 });
      pushHeap(this.#order, slot);
    }
    this.#sweep();
    this.#arm(slot);
  }

  /** Takes a sleeper out; it can be put in again. */
  forget(sleeper: S): void {
    if (this.#alarms.wakeAt(sleeper) === Number.POSITIVE_INFINITY) return;
    this.#alarms.setWakeAt(sleeper, Number.POSITIVE_INFINITY);
    this.#sleepers -= 1;
    this.#sweep();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#slots.clear();
    this.#order.length = 0;
  }

  /** Whether a place in a slot is that of a sleeper, and not one that it has left. */
  #sleepsIn(slot: number, sleeper: S): boolean {
    return slotOf(this.#alarms.wakeAt(sleeper)) === slot;
  }

  /** Places that were left would lie there until their time, which may be days. */
  #sweep(): void {
    if (this.#places < 2 * this.#sleepers + LEFT) return;
    this.#order.length = 0;
    this.#places = 0;
    for (const [number, slot] of this.#slots) {
      // One that left and came back has two.
      const here = new Set(slot.sleepers.slice(slot.next).filter((sleeper) => this.#sleepsIn(number, sleeper)));
      slot.sleepers = [...here];
      slot.next = 0;
      this.#places += here.size;
      if (here.size > 0) pushHeap(this.#order, number);
      else this.#slots.delete(number);
    }
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
  #empty(number: number, due: S[]): void {
    const slot = this.#slots.get(number) as Slot<S>;
    const { sleepers } = slot;
    for (; slot.next < sleepers.length; slot.next++) {
      if (due.length >= AT_ONCE) return;
      const sleeper = sleepers[slot.next] as S;
      this.#places -= 1;
      if (!this.#sleepsIn(number, sleeper)) continue;
      this.#alarms.setWakeAt(sleeper, Number.POSITIVE_INFINITY);
      this.#sleepers -= 1;
      due.push(sleeper);
    }
    this.#slots.delete(number);
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
