import { type LimitResponse, retryAfterSeconds } from '../http/index.js';
import type { Leave } from './outbound-gate.js';

/**
 * The answer to a request that was not sent: a 429, as the upstream would have given, so that callers need no second way
 * to be told. Its problem type says who really answered.
 */
export function heldBack({ policy, retryAfterMs }: Leave & { granted: false }): LimitResponse {
  const seconds = retryAfterMs === undefined ? undefined : retryAfterSeconds(retryAfterMs);
  const when = seconds === undefined ? '' : ` Retry in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`;
  return {
    status: 429,
    headers: {
      ...(seconds !== undefined && { 'Retry-After': String(seconds) }),
      'Content-Type': 'application/problem+json',
    },
    body: JSON.stringify({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Request was held back before it was sent',
      status: 429,
      detail: `It could not be sent under "${policy}" in the time it may wait.${when}`,
      'violated-policies': [policy],
    }),
    retryAfterMs,
  };
}
