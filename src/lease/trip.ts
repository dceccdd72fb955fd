import type { LeaseCall } from '../ceiling/ceiling-store.js';
import type { RoundTripEnd, RoundTripStart } from '../telemetry/observer.js';
import { MICRO, type Milliseconds, type Tokens } from '../units.js';

/** The calls of one tick on their way to the store and back, as an observer is told of them. */
export class Trip {
  granted: Tokens = 0;
  #pending: number;
  #failed = 0;
  #error: Error | undefined;

  constructor(calls: number) {
    this.#pending = calls;
  }

  start(calls: readonly LeaseCall[]): RoundTripStart {
    let need = 0;
    let want = 0;
    const policies = new Set<string>();
    for (const call of calls) {
      need += call.need;
      want += call.want;
      policies.add(call.policy);
    }
    return { policies: [...policies], calls: calls.length, need: need / MICRO, want: want / MICRO };
  }

  failed(error: Error): void {
    this.#failed += 1;
    this.#error ??= error;
  }

  /** Counts one call as over; answers whether it was the last. */
  settled(): boolean {
    this.#pending -= 1;
    return this.#pending === 0;
  }

  end(durationMs: Milliseconds): RoundTripEnd {
    const end = { durationMs, granted: this.granted, failed: this.#failed };
    return this.#error ? { ...end, error: this.#error } : end;
  }
}
