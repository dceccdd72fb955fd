/** What is called off when a signal is aborted, by signal: with a single listener for all of it. */
interface Watched {
  readonly calls: Set<() => void>;
  readonly aborted: () => void;
}

const watched = new WeakMap<AbortSignal, Watched>();

/**
 * Calls `call` once if `signal` is aborted, until the answer is called. However many wait under one signal, such as that of
 * a shutdown, it gets one listener: of more than ten Node warns as of a leak, and it searches all to take one off.
 *
 * @param signal not aborted yet; `undefined`: nothing is ever called
 */
export function onAbort(signal: AbortSignal | undefined, call: () => void): () => void {
  if (signal === undefined) return () => {};
  const { calls } = watched.get(signal) ?? watch(signal);
  calls.add(call);
  return () => {
    calls.delete(call);
    if (calls.size === 0) unwatch(signal, calls);
  };
}

function watch(signal: AbortSignal): Watched {
  const calls = new Set<() => void>();
  const aborted = (): void => {
    watched.delete(signal);
    for (const call of calls) call();
  };
  const watch = { calls, aborted };
  watched.set(signal, watch);
  signal.addEventListener('abort', aborted, { once: true });
  return watch;
}

function unwatch(signal: AbortSignal, calls: Set<() => void>): void {
  const watch = watched.get(signal);
  // Others may have come under it since those here have been called off.
  if (watch?.calls !== calls) return;
  watched.delete(signal);
  signal.removeEventListener('abort', watch.aborted);
}
