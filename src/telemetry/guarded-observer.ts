import type { Observer } from './observer.js';

/**
 * An observer around another, maybe throwing one: what that throws never reaches a decision, a round trip is sent exactly
 * once whatever happens, and what was begun is ended at most once. The first failure becomes a warning of the process.
 */
export function guardedObserver(observer: Observer): Observer {
  let warned = false;
  const failed = (error: unknown): void => {
    if (warned) return;
    warned = true;
    process.emitWarning('An observer of headgate threw. It goes on without what it could not observe; shown once.', {
      type: 'HeadgateWarning',
      code: 'HEADGATE_OBSERVER',
      detail: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
  };
  const attempt = <Result>(otherwise: Result, run: () => Result): Result => {
    try {
      return run();
    } catch (error) {
      failed(error);
      return otherwise;
    }
  };
  const once = <Argument>(end: ((argument: Argument) => void) | undefined): ((argument: Argument) => void) => {
    let pending = end;
    return (argument) => {
      const call = pending;
      pending = undefined;
      if (call) attempt(undefined, () => call(argument));
    };
  };

  return {
    roundTrip(start, send) {
      let sent = false;
      let thrown: { error: unknown } | undefined;
      // An error of `send` is the caller's own, and must neither be taken for the observer's nor lost in it.
      const sendOnce = (): void => {
        if (sent) return;
        sent = true;
        try {
          send();
        } catch (error) {
          thrown = { error };
        }
      };
      const end = once(attempt(undefined, () => observer.roundTrip(start, sendOnce)));
      sendOnce();
      if (thrown) {
        const error = thrown.error instanceof Error ? thrown.error : new Error(String(thrown.error));
        end({ durationMs: 0, granted: 0, failed: start.calls, error });
        throw thrown.error;
      }
      return end;
    },
    policyChanged: (change) => attempt(undefined, () => observer.policyChanged(change)),
    degradedChanged: (change) => attempt(undefined, () => observer.degradedChanged(change)),
    ...(observer.allowedWatch && { allowedWatch: observer.allowedWatch }),
    allowed: (note) => attempt(undefined, () => observer.allowed?.(note)),
    watchesDenials: () => attempt(false, () => observer.watchesDenials()),
    denied: (note) => attempt(undefined, () => observer.denied(note)),
    waiting: (policy, cost) => once(attempt(undefined, () => observer.waiting(policy, cost))),
    trouble: (error) => attempt(undefined, () => observer.trouble(error)),
    inject: () => attempt({}, () => observer.inject()),
    attach: (readings) => once(attempt(undefined, () => observer.attach(readings))) as () => void,
  };
}
