import type { MarkReply } from '../ceiling/mark-store.js';
import type { Sleeper } from '../lease/wake-queue.js';
import type { Milliseconds } from '../units.js';

/** What is known of one key that is blocked, or about which something is being said. */
export class MarkedKey implements Sleeper {
  readonly policy: string;
  readonly key: string;
  /** Until when it is blocked, on the monotonic clock; `-Infinity`: it is not. */
  end: Milliseconds = Number.NEGATIVE_INFINITY;
  /** What the store said last: of which era, under which number. */
  era = '';
  seq = 0;
  /** Calls of our own about it that are under way. */
  calls = 0;
  /** Number of the last reset that was made here. */
  ownReset = 0;
  /** The last that the store told meanwhile. */
  aside: { readonly reply: MarkReply; readonly resetsAfter: number } | undefined;
  wakeAt: Milliseconds = Number.POSITIVE_INFINITY;
  wakeSlot = 0;

  constructor(policy: string, key: string) {
    this.policy = policy;
    this.key = key;
  }

  /**
   * Keeps what the store has told until it can be believed: the newest there is.
   *
   * @param resetsAfter resets of a lower number have been heard of
   */
  putAside(reply: MarkReply, resetsAfter: number): void {
    const { aside } = this;
    if (!aside) {
      this.aside = { reply, resetsAfter };
      return;
    }
    const older = aside.reply.era === reply.era && aside.reply.mark.seq > reply.mark.seq;
    this.aside = {
      reply: older ? aside.reply : reply,
      resetsAfter: Math.min(aside.resetsAfter, resetsAfter),
    };
  }
}
