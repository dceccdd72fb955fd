import type { ShareBucket } from '../lease/share-bucket.js';
import type { Sleeper } from '../lease/wake-queue.js';
import type { MicroTokens, Milliseconds } from '../units.js';

/** A slot of this process: whoever costs no more than it was reserved for may go from `at` on, before `until`. */
export interface Place {
  readonly at: Milliseconds;
  readonly until: Milliseconds;
  readonly micro: MicroTokens;
}

/** One who waits for a slot. */
export interface Seeker extends Sleeper {
  readonly micro: MicroTokens;
  readonly deadline: Milliseconds;
  place: Place | undefined;
}

/** Those who wait for slots of one key, in the order in which they came, and what is known of its schedule. */
export class PaceLine<S extends Seeker = Seeker> {
  readonly seekers = new Set<S>();
  /** Slots that nobody here needs. */
  #spare: Place[] = [];
  /** The next slot is not before this, as far as is known here. */
  nextAt: Milliseconds = 0;
  /** When asking again is of use, as was last heard. */
  roomAt: Milliseconds = 0;
  /** The schedule can't be asked. */
  degraded = false;
  /** In an outage with the mode `share`: what this instance may admit by itself. */
  share: ShareBucket | undefined;

  /** A slot nobody needs that `seeker` can use in time. */
  takeSpare({ micro, deadline }: Seeker, now: Milliseconds): Place | undefined {
    this.#spare = this.#spare.filter(({ until }) => until > now).sort((a, b) => a.at - b.at);
    const index = this.#spare.findIndex((place) => place.micro >= micro && place.at <= Math.max(deadline, now));
    return index < 0 ? undefined : this.#spare.splice(index, 1)[0];
  }

  /** Hands a slot to the first of those behind it that costs no more, whose own goes to the next, and so on. */
  free(place: Place, now: Milliseconds, moved: (seeker: S, to: Place) => void): void {
    let free = place;
    for (const seeker of this.seekers) {
      if (free.until <= now) return;
      const own = seeker.place;
      if (!own || own.at <= free.at || seeker.micro > free.micro) continue;
      moved(seeker, free);
      free = own;
    }
    if (free.until > now) this.#spare.push(free);
  }
}
