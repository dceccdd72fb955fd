import type { Milliseconds } from '../units.js';
import { NEVER } from './event-queue.js';
import type { Traffic } from './parse-scenario.js';
import type { Dice } from './random.js';

/** When the calls of one instance come. */
export interface Arrivals {
  /** The first moment after `last`; {@link NEVER} once they have ended. */
  after(last: Milliseconds): Milliseconds;
}

/** The arrivals of `traffic` at one instance, from `dice` that are its own. */
export function arrivalsOf(traffic: Traffic, dice: Dice): Arrivals {
  const { shape, gapMs, spreadMs, fromMs, untilMs } = traffic;
  const within = (at: Milliseconds): Milliseconds => (at < untilMs ? at : NEVER);
  if (shape === 'cron') {
    let multiple = Math.ceil(fromMs / gapMs);
    return { after: () => within(multiple++ * gapMs + (spreadMs > 0 ? spreadMs * dice.roll() : 0)) };
  }
  if (shape === 'steady') {
    let at = fromMs - gapMs + gapMs * dice.roll();
    return {
      after() {
        at += gapMs;
        return within(at);
      },
    };
  }
  return { after: (last) => within(Math.max(last, fromMs) + dice.exponential(gapMs)) };
}

/** Which of `count` keys a call is about: the first is asked for most, by Zipf's law with this exponent. */
export function zipf(count: number, skew: number, dice: Dice): () => number {
  if (skew === 0) return () => Math.floor(dice.roll() * count);
  // Rejection from the continuous law, which needs no table (Hörmann and Derflinger).
  const integral = (x: number): number => (skew === 1 ? Math.log(x) : (x ** (1 - skew) - 1) / (1 - skew));
  const inverse = (y: number): number => (skew === 1 ? Math.exp(y) : (1 + y * (1 - skew)) ** (1 / (1 - skew)));
  const low = integral(1.5) - 1;
  const high = integral(count + 0.5);
  return () => {
    for (;;) {
      const y = low + dice.roll() * (high - low);
      const rank = Math.min(count, Math.max(1, Math.round(inverse(y))));
      if (y >= integral(rank + 0.5) - rank ** -skew) return rank - 1;
    }
  };
}
