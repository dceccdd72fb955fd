import type { EpochMilliseconds, Milliseconds } from './units.js';

/**
 * Where the limiter gets the time from. Production code below the limiter takes times as arguments; only the top reads
 * this port, so that a test or a simulation can put a whole fleet on virtual time.
 */
export interface Time {
  /** Monotonic milliseconds, with fractions: never goes back, its origin means nothing. Decides everything local. */
  now(): Milliseconds;
  /** The wall clock. Only compared with {@link now} to notice a suspended machine; never used to decide. */
  wallNow(): EpochMilliseconds;
  /** Runs `task` once, after `delayMs` (0: after the current turn). The timer must not keep the process alive. */
  after(delayMs: Milliseconds, task: () => void): Timer;
  /** Keeps the process alive until the answer is called: used while callers of `acquire` wait. Default: nothing does. */
  keepAlive?(): () => void;
}

/** A pending task of {@link Time.after}. */
export interface Timer {
  cancel(): void;
}

/** `setTimeout` fires at once for anything longer than this (2^31 − 1 ms), so longer delays are cut to it. */
const LONGEST_TIMEOUT_MS = 2_147_483_647;

/** The process's own clocks and timers. */
export const systemTime: Time = {
  now: performance.now.bind(performance),
  wallNow: Date.now,
  after(delayMs, task) {
    if (delayMs <= 0) {
      const immediate = setImmediate(task);
      return { cancel: () => clearImmediate(immediate) };
    }
    const timeout = setTimeout(task, Math.min(Math.ceil(delayMs), LONGEST_TIMEOUT_MS));
    timeout.unref();
    return { cancel: () => clearTimeout(timeout) };
  },
  keepAlive() {
    const interval = setInterval(() => {}, LONGEST_TIMEOUT_MS);
    return () => clearInterval(interval);
  },
};

/**
 * As `time.after`, for the last moment of an answer: one that has come by then is read first. A process that was held up runs
 * its timers before it reads its sockets, and would give up what lies there.
 */
export function atDeadline(time: Pick<Time, 'after'>, delayMs: Milliseconds, task: () => void): Timer {
  let timer = time.after(delayMs, () => {
    timer = time.after(0, task);
  });
  return { cancel: () => timer.cancel() };
}

/** A source of uniform numbers in [0, 1), as `Math.random`. An argument wherever chance is used, so that runs repeat. */
export type Random = () => number;

/** A new 96-bit identity, as 16 characters of base64url. */
export function randomId(random?: Random): string {
  const bytes = new Uint8Array(12);
  if (random) for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(random() * 256);
  else crypto.getRandomValues(bytes);
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
}
