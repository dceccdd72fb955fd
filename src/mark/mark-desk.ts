import { MARK_KEPT_US, type MarkCall, type MarkFeed, type MarkReply, type MarkStore } from '../ceiling/mark-store.js';
import { CeilingError } from '../errors.js';
import { WakeQueue } from '../lease/wake-queue.js';
import type { Observer } from '../telemetry/observer.js';
import { atDeadline, type Random, type Time, type Timer } from '../time.js';
import { MICROS_PER_MS, type Milliseconds } from '../units.js';
import { type Block, type BlockTerms, leftOf } from './block.js';
import type { MarkedKey } from './marked-key.js';
import type { MarkedKeys } from './marked-keys.js';

/** What the desk is made of. */
export interface MarkDeskParts {
  readonly store: { readonly ready: boolean; readonly marks?: MarkStore };
  readonly time: Time;
  readonly random: Random;
  readonly observer: Pick<Observer, 'trouble'>;
  /** How long a call may take before it is given up. */
  readonly deadlineMs: Milliseconds;
  /** How often a store that does not tell is asked what has changed. */
  readonly blocksEveryMs: Milliseconds;
  readonly marked: MarkedKeys;
}

/** A reading from the start that has taken longer than this begins again: what it has not come to yet may be gone. */
const LONGEST_READING_MS: Milliseconds = MARK_KEPT_US / MICROS_PER_MS / 2;

/** Who knows nothing yet asks again after this: a client that has just been made is not connected at once. */
const FIRST_PAUSE_MS: Milliseconds = 50;

const NEVER: Milliseconds = Number.NEGATIVE_INFINITY;

/**
 * Knows which keys are blocked, and says so to the fleet. What is said here holds here at once; what other instances say
 * is heard at once where the store tells, and where it does not, the next time it is asked what has changed. What is
 * known stays in force until its end, whatever becomes of the store.
 */
export class MarkDesk {
  readonly #parts: MarkDeskParts;
  readonly #wakes: WakeQueue<MarkedKey>;
  /** Not blocked, but the feed has yet to pass what they know: it must not be believed about them before. */
  readonly #lifted = new Set<MarkedKey>();
  /** What has been heard of the store: everything up to `seq` of this era. */
  #era = '';
  #seq = 0;
  /** While it is read from the start: since when, and what has been found. */
  #readingSince: Milliseconds = NEVER;
  #found: Set<MarkedKey> | undefined;
  #failing = false;
  #timer: Timer | undefined;
  readonly #deadlines = new Set<Timer>();
  #unlisten: (() => void) | undefined;
  #closed = false;

  constructor(parts: MarkDeskParts) {
    this.#parts = parts;
    this.#wakes = new WakeQueue(parts.time, (key) => this.#settle(key));
  }

  /** Hears what holds already, as far as the store says so within a call's deadline, and what changes from then on. */
  async begin(): Promise<void> {
    const { marks } = this.#parts.store;
    if (!marks) return;
    this.#unlisten = marks.listen?.((reply) => this.#hear(reply, reply.mark.seq - 1));
    await this.#read();
  }

  /** Says to the fleet what is held here: that a key is blocked. */
  async block(marked: MarkedKey, terms: BlockTerms): Promise<Block> {
    const reply = await this.#say(marked, { kind: 'block', ...nameOf(marked), ...terms }, 'The block holds');
    const forMs = Math.ceil(leftOf(reply.mark.until, reply.now));
    return { forMs, step: terms.forgetAfter > 0 ? reply.mark.step : 0 };
  }

  /** The same: that it is not any more. */
  async unblock(marked: MarkedKey): Promise<void> {
    await this.#say(marked, { kind: 'unblock', ...nameOf(marked) }, 'The block is lifted');
  }

  /**
   * The same: that it is as if it had never been asked for.
   *
   * @param refill fills the key's bucket at the store: before other instances hear that it is full
   */
  async reset(marked: MarkedKey, refill: () => Promise<void>): Promise<void> {
    const failure = await refill().then(
      () => undefined,
      (error: Error) => error,
    );
    await this.#say(marked, { kind: 'reset', ...nameOf(marked) }, 'The key is reset');
    if (failure) throw new CeilingError(`The ceiling was not filled: ${failure.message}`, { cause: failure });
  }

  close(): void {
    this.#closed = true;
    this.#unlisten?.();
    this.#timer?.cancel();
    for (const deadline of this.#deadlines) deadline.cancel();
    this.#wakes.close();
  }

  /** @throws CeilingError where the store did not hear of it; what has been put in force here stays. */
  async #say(marked: MarkedKey, call: MarkCall, what: string): Promise<MarkReply> {
    const { ready, marks } = this.#parts.store;
    try {
      if (!marks) throw new CeilingError('this ceiling store keeps no marks.');
      if (!ready) throw new CeilingError('the ceiling store is not connected.');
      const reply = await this.#inTime(marks.mark(call));
      if (call.kind === 'reset') marked.ownReset = reply.mark.seq;
      marked.putAside(reply, this.#resetsHeard(reply.era));
      return reply;
    } catch (error) {
      throw new CeilingError(`${what} in this instance only: ${(error as Error).message}`, { cause: error });
    } finally {
      marked.calls -= 1;
      this.#takeAside(marked);
    }
  }

  /** Up to which number nothing need be done about resets: they have been heard of, or are older than all that is here. */
  #resetsHeard(era: string): number {
    return era === this.#era && !this.#unlisten ? this.#seq : Number.POSITIVE_INFINITY;
  }

  #hear(reply: MarkReply, resetsAfter: number): MarkedKey {
    const marked = this.#parts.marked.open(reply.mark.policy, reply.mark.key);
    marked.putAside(reply, resetsAfter);
    this.#takeAside(marked);
    return marked;
  }

  #takeAside(marked: MarkedKey): void {
    // While something of our own is under way, it is not known which of the two comes last.
    if (marked.calls > 0) return;
    const { aside } = marked;
    marked.aside = undefined;
    if (aside && !this.#closed) this.#take(marked, aside.reply, aside.resetsAfter);
    this.#settle(marked);
  }

  /** Believes what the store says about a key, if that is newer than what is known. */
  #take(marked: MarkedKey, { era, now, mark }: MarkReply, resetsAfter: number): void {
    const known = marked.era === era ? marked.seq : 0;
    if (mark.seq <= known) return;
    marked.era = era;
    marked.seq = mark.seq;
    const end = mark.until > now ? this.#parts.time.now() + leftOf(mark.until, now) : NEVER;
    const reset = mark.reset > Math.max(known, resetsAfter) && mark.reset !== marked.ownReset;
    if (end === marked.end && !reset) return;
    marked.end = end;
    this.#parts.marked.tell(marked, reset);
  }

  /** Sees to it that a key is forgotten when nothing needs to be known of it any more. */
  #settle(marked: MarkedKey): void {
    if (marked.end > this.#parts.time.now()) {
      this.#wakes.wakeBy(marked, marked.end);
      return;
    }
    marked.end = NEVER;
    const ahead = !this.#unlisten && marked.era === this.#era && marked.seq > this.#seq;
    if (marked.calls > 0) return;
    if (ahead) this.#lifted.add(marked);
    else this.#forget(marked);
  }

  #forget(marked: MarkedKey): void {
    this.#lifted.delete(marked);
    this.#wakes.forget(marked);
    this.#parts.marked.of(marked.policy).delete(marked.key);
  }

  /** Asks what has changed, page by page, and sees to it that it is asked again. */
  async #read(): Promise<void> {
    const { marks, ready } = this.#parts.store;
    try {
      for (let more = ready; more && marks && !this.#closed; ) {
        const reading = this.#parts.time.now() - this.#readingSince < LONGEST_READING_MS;
        const feed = await this.#inTime(marks.feed(this.#era, this.#seq, reading));
        if (!this.#closed) this.#takePage(feed);
        more = feed.more;
      }
      this.#failing = false;
    } catch (error) {
      // Told once: a store that is out of reach is known to be.
      if (!this.#failing && !this.#closed) this.#parts.observer.trouble(error as Error);
      this.#failing = true;
    }
    if (this.#closed || this.#unlisten) return;
    const { time, random, blocksEveryMs } = this.#parts;
    const pauseMs = this.#era === '' ? Math.min(FIRST_PAUSE_MS, blocksEveryMs) : blocksEveryMs;
    this.#timer = time.after(pauseMs * (0.9 + 0.2 * random()), () => void this.#read());
  }

  #takePage(feed: MarkFeed): void {
    const { era, born, now, fresh, marks, seq, more } = feed;
    // Who is new has no bucket that was in use before a reset; in a new era what is older than it had its time.
    const resetsAfter = this.#era === '' ? Number.POSITIVE_INFINITY : era === this.#era ? this.#seq : born;
    if (fresh) {
      this.#readingSince = this.#parts.time.now();
      this.#found = new Set();
    }
    for (const mark of marks) {
      const marked = this.#hear({ era, now, mark }, resetsAfter);
      this.#found?.add(marked);
    }
    this.#era = era;
    this.#seq = seq;
    if (more) return;
    if (this.#found) this.#liftAllBut(this.#found);
    this.#found = undefined;
    this.#readingSince = NEVER;
    for (const marked of this.#lifted) this.#settle(marked);
  }

  /** All that holds has been read: what is known of this era and was not there has been lifted, unheard. */
  #liftAllBut(found: ReadonlySet<MarkedKey>): void {
    for (const marked of this.#parts.marked.all()) {
      if (marked.era !== this.#era || marked.seq > this.#seq || marked.calls > 0 || found.has(marked)) continue;
      marked.end = NEVER;
      this.#parts.marked.tell(marked, false);
      this.#settle(marked);
    }
  }

  /** The answer of a call, unless it takes too long. */
  #inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const { time, deadlineMs } = this.#parts;
    return new Promise((resolve, reject) => {
      const deadline = atDeadline(time, deadlineMs, () => {
        this.#deadlines.delete(deadline);
        reject(new CeilingError(`The ceiling store did not answer within ${deadlineMs} ms.`));
      });
      this.#deadlines.add(deadline);
      const ended = (): void => {
        deadline.cancel();
        this.#deadlines.delete(deadline);
      };
      answer.then(resolve, reject).finally(ended);
    });
  }
}

function nameOf({ policy, key }: MarkedKey): { readonly policy: string; readonly key: string } {
  return { policy, key };
}
