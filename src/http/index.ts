export { checkResponseOptions } from './check-response-options.js';
export { HEADER_DIALECTS, type HeaderDialect, type HeaderFields } from './dialects.js';
export {
  headersFor,
  type LimitResponse,
  type ResponseOptions,
  type ResponseSurroundings,
  responseTo,
} from './limit-response.js';
export type { ProblemDetails } from './problem.js';
export { type Quota, quotaOf } from './quota.js';
export { retryAfterSeconds } from './retry-after.js';
export { RetrySlots } from './retry-slots.js';
export type { Ruling } from './ruling.js';
