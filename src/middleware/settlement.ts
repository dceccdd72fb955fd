import { ClosedError } from '../errors.js';
import type { Ruling } from '../http/index.js';
import type { Limiter } from '../index.js';
import { MICRO, type Tokens } from '../units.js';
import { penalise, refund } from '../verb/one-limit.js';
import type { GateOptions, ResponseOutcome } from './gate-options.js';

/**
 * How a request is charged by what it really cost: once its response is known, and once only. `undefined` where that is
 * of no interest. The response has been sent by then, so what `settle` throws becomes a warning of the process.
 */
export function settlement<Request>(
  limiter: Limiter,
  settle: GateOptions<Request>['settle'],
  request: Request,
  rulings: readonly Ruling[],
): ((response: ResponseOutcome) => void) | undefined {
  if (settle === undefined) return undefined;
  let settled = false;
  return (response) => {
    if (settled) return;
    settled = true;
    try {
      for (const ruling of rulings) adjust(limiter, ruling, settle(response, request, ruling));
    } catch (error) {
      // A limiter that is closed has no books left to correct.
      if (!(error instanceof ClosedError)) process.emitWarning(error as Error);
    }
  };
}

function adjust(limiter: Limiter, { decision, key, cost }: Ruling, actual: Tokens): void {
  // What was let pass without being charged can't be given back.
  if (!decision.allowed || decision.shadow !== undefined || decision.limit === Number.POSITIVE_INFINITY) return;
  const policy = limiter.policy(decision.policy);
  // In whole millionths, so that the difference of two decimals is one again.
  const difference = (Math.round(cost * MICRO) - Math.round(actual * MICRO)) / MICRO;
  if (difference > 0) refund(policy, key, difference);
  else if (difference < 0) penalise(policy, key, -difference);
}
