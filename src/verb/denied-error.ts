import { HeadgateError } from '../errors.js';
import type { Denied } from '../limiter/decision.js';
import type { NoSeat } from '../seat/seat.js';
import type { Milliseconds } from '../units.js';

/** A call was not made, since its limit denied it. Only where the answer is that of the call: as of `schedule`. */
export class DeniedError extends HeadgateError {
  /** What `acquire` answered; or what `enter` did, where it was a seat that was lacking. */
  readonly decision: Denied | NoSeat;

  constructor(policy: string, decision: Denied | NoSeat) {
    const wait = 'retryAfterMs' in decision ? decision.retryAfterMs : undefined;
    const when = wait === undefined ? '' : `, for ${wait} ms`;
    super('HEADGATE_DENIED', `Expected "${policy}" to let the call pass, got a denial: ${decision.reason}${when}.`);
    this.decision = decision;
  }

  /** When the call could pass, counted from its denial; `undefined` where that is not known. */
  get retryAfterMs(): Milliseconds | undefined {
    return 'retryAfterMs' in this.decision ? this.decision.retryAfterMs : undefined;
  }
}
